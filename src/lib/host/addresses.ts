// The address under which other machines reach this one: as configured, as the cloud says, or as the interfaces say.
import { request } from 'node:http';
import { isIPv4 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import type { ClusterConfig } from '../config/config.ts';
import type { Log } from '../report/log.ts';

export type AddressSources = {
  log: Log;
  /** Of the instance metadata service; tests serve their own. */
  metadataUrl?: string;
  interfaces?: NodeJS.Dict<NetworkInterfaceInfo[]>;
};

const defaultMetadataUrl = 'http://169.254.169.254';

/** For the token and the address together: off EC2 nothing answers at all. */
const metadataTimeoutMs = 2000;

const metadataAnswers = new Map<string, Promise<string | undefined>>();

/** The environment's variable is part of the configuration by now. Never throws. */
export async function findAdvertiseIp(
  cluster: Pick<ClusterConfig, 'advertiseIp' | 'store'>,
  { log, metadataUrl = defaultMetadataUrl, interfaces = networkInterfaces() }: AddressSources,
): Promise<string> {
  if (cluster.advertiseIp !== undefined) return cluster.advertiseIp;
  if (cluster.store.startsWith('s3://')) {
    const address = await askMetadataOnce(metadataUrl);
    if (address !== undefined) return address;
  }
  const address = pickInterfaceAddress(interfaces);
  if (address !== undefined) return address;
  log.warning('no address found under which other machines reach this one: set cluster.advertiseIp', {
    using: '127.0.0.1',
  });
  return '127.0.0.1';
}

/** The first IPv4 address that is not internal, by the interfaces' names; those of containers and bridges come last. */
export function pickInterfaceAddress(interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>): string | undefined {
  const candidates = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => ({ rank: rankOf(name, address), name, address })),
  );
  candidates.sort((a, b) => a.rank - b.rank || compare(a.name, b.name) || compare(a.address, b.address));
  return candidates[0]?.address;
}

function rankOf(name: string, address: string): number {
  const isLinkLocal = address.startsWith('169.254.');
  const isVirtual = /^(docker|br-|veth|virbr|cni|cali|flannel|podman|lxc)/.test(name);
  return (isLinkLocal ? 2 : 0) + (isVirtual ? 1 : 0);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function askMetadataOnce(baseUrl: string): Promise<string | undefined> {
  const known = metadataAnswers.get(baseUrl);
  if (known !== undefined) return known;
  const answer = askMetadata(baseUrl).catch(() => undefined);
  metadataAnswers.set(baseUrl, answer);
  return answer;
}

/** Version 2 of the service: a token first. */
async function askMetadata(baseUrl: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(metadataTimeoutMs);
  const token = await send(`${baseUrl}/latest/api/token`, {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
    signal,
  });
  const address = await send(`${baseUrl}/latest/meta-data/local-ipv4`, {
    method: 'GET',
    headers: { 'x-aws-ec2-metadata-token': token.trim() },
    signal,
  });
  return isIPv4(address.trim()) ? address.trim() : undefined;
}

/** No answer of the service is longer. */
const maxAnswerLength = 4096;

function send(
  url: string,
  options: { method: string; headers: Record<string, string>; signal: AbortSignal },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { ...options, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > maxAnswerLength) response.destroy(new Error('the answer is too long'));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}
