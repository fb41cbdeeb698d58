import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findAdvertiseIp, pickInterfaceAddress } from '../../../src/lib/host/addresses.ts';
import { type Log, silentLog } from '../../../src/lib/report/log.ts';

function at(address: string, about: Partial<NetworkInterfaceInfo> = {}): NetworkInterfaceInfo {
  const family = address.includes(':') ? 'IPv6' : 'IPv4';
  return {
    address,
    family,
    internal: false,
    netmask: '',
    mac: '',
    cidr: null,
    ...about,
  } as NetworkInterfaceInfo;
}

const eth0 = { eth0: [at('10.0.0.5')] };

/** A metadata service on loopback; what it was asked is kept. */
async function serveMetadata(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function answerAsEc2(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'PUT' && request.url === '/latest/api/token') {
    const ttl = request.headers['x-aws-ec2-metadata-token-ttl-seconds'];
    response.writeHead(ttl === undefined ? 400 : 200).end('token-1');
  } else if (request.headers['x-aws-ec2-metadata-token'] !== 'token-1') {
    response.writeHead(401).end();
  } else {
    response.end('172.31.5.6');
  }
}

describe('findAdvertiseIp', () => {
  it('takes the configured address, and asks nobody', async () => {
    const { url, asked } = await serveMetadata(answerAsEc2);
    const ip = await findAdvertiseIp(
      { advertiseIp: '10.9.9.9', store: 's3://b' },
      { log: silentLog, metadataUrl: url, interfaces: eth0 },
    );
    expect([ip, asked]).toEqual(['10.9.9.9', []]);
  });

  it('asks EC2 once, with a token, where the store is in S3 (L26)', async () => {
    const { url, asked } = await serveMetadata(answerAsEc2);
    const sources = { log: silentLog, metadataUrl: url, interfaces: eth0 };
    expect(await findAdvertiseIp({ store: 's3://b' }, sources)).toBe('172.31.5.6');
    expect(await findAdvertiseIp({ store: 's3://b' }, sources)).toBe('172.31.5.6');
    expect(asked).toEqual(['PUT /latest/api/token', 'GET /latest/meta-data/local-ipv4']);
  });

  it('does not ask EC2 where the store is a directory', async () => {
    const { url, asked } = await serveMetadata(answerAsEc2);
    const ip = await findAdvertiseIp(
      { store: 'file:///s' },
      { log: silentLog, metadataUrl: url, interfaces: eth0 },
    );
    expect([ip, asked]).toEqual(['10.0.0.5', []]);
  });

  it.each([
    ['refuses', (_: IncomingMessage, response: ServerResponse) => response.writeHead(403).end()],
    ['answers with no address', (_: IncomingMessage, response: ServerResponse) => response.end('<html>')],
    [
      'answers without end',
      (_: IncomingMessage, response: ServerResponse) => response.end('x'.repeat(100_000)),
    ],
    ['hangs up', (request: IncomingMessage) => request.socket.destroy()],
    ['never answers', () => {}],
  ])('goes on to the interfaces where the metadata service %s', async (_title, answer) => {
    const { url } = await serveMetadata(answer);
    const sources = { log: silentLog, metadataUrl: url, interfaces: eth0 };
    expect(await findAdvertiseIp({ store: 's3://b' }, sources)).toBe('10.0.0.5');
  });

  it('falls back to loopback with a warning', async () => {
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warning: (message) => warnings.push(message) };
    const interfaces = { lo: [at('127.0.0.1', { internal: true })], eth0: [at('fe80::1')] };
    expect(await findAdvertiseIp({ store: 'file:///s' }, { log, interfaces })).toBe('127.0.0.1');
    expect(warnings).toEqual([
      'no address found under which other machines reach this one: set cluster.advertiseIp',
    ]);
  });
});

describe('pickInterfaceAddress', () => {
  it.each([
    ['by name, not by the order given', { eth1: [at('10.0.0.2')], eth0: [at('10.0.0.1')] }, '10.0.0.1'],
    [
      'never a bridge of containers before a network',
      { docker0: [at('172.17.0.1')], ens5: [at('10.0.0.3')] },
      '10.0.0.3',
    ],
    ['a bridge where there is nothing else', { docker0: [at('172.17.0.1')] }, '172.17.0.1'],
    [
      'never a link-local address before another',
      { a: [at('169.254.1.1')], b: [at('10.0.0.4')] },
      '10.0.0.4',
    ],
    [
      'none among loopback and IPv6',
      { lo: [at('127.0.0.1', { internal: true })], e: [at('2001:db8::1')] },
      undefined,
    ],
  ])('picks %s', (_title, interfaces, address) => {
    expect(pickInterfaceAddress(interfaces)).toBe(address);
  });
});
