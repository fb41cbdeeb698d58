// 2,000 domains with 5,000 backends: what a tick costs that has nothing to do, and how soon a new domain is served.
import { readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ShardBackend } from '../../../src/lib/cluster/wire.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { startEdge, type TestEdge } from '../../support/edge.ts';
import { readSlowness } from '../../support/machine-speed.ts';
import { startProcess } from '../../support/programs.ts';
import { measureInTurn } from '../../support/timing.ts';

const cleanUps: (() => void | Promise<void>)[] = [];
const onFileFinished = (clean: () => void | Promise<void>): void => void cleanUps.push(clean);
afterAll(async () => {
  for (const clean of cleanUps.toReversed()) await clean();
});

const nodes = 10;
const portsOfNode = 500;
const domains = 2000;

/** One process behind all of it: each node has an address of the loopback, and they share their ports. */
async function startCrowd(): Promise<number[]> {
  const servers: Server[] = [];
  for (let count = 0; count < portsOfNode; count += 1) {
    const server = createServer((request, response) => {
      response.end(`${request.headers.host} on ${request.socket.localAddress}:${request.socket.localPort}`);
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    servers.push(server);
  }
  onFileFinished(() => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  });
  return servers.map((server) => (server.address() as { port: number }).port);
}

function publishAll(edge: TestEdge, ports: readonly number[]): void {
  for (let node = 0; node < nodes; node += 1)
    edge.publish(`app-${node}`, shardOf(node, ports), { privateIp: addressOf(node) });
}

function shardOf(node: number, ports: readonly number[]): ShardBackend[] {
  return ports.map((hostPort, index) => {
    const domain = `d${(node * portsOfNode + index) % domains}.example.com`;
    return { domain, hostPort, healthPath: '/healthz' };
  });
}

const addressOf = (node: number): string => `127.0.1.${node + 1}`;

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Of one tick, in MB. */
async function measurePeak({ environment }: TestEdge): Promise<number> {
  const argv = ['-f', '%M', inject('reeveBin'), 'edge'];
  const { stderr } = await startProcess('/usr/bin/time', argv, environment).ended;
  return (Number(stderr.trim().split('\n').at(-1)) * 1024) / 1e6;
}

/** Caddy is changed once in two seconds: a change that comes sooner waits. */
async function waitForTurn(edge: TestEdge): Promise<void> {
  const lastMs = Date.parse(edge.status().caddy.lastReloadAt ?? '');
  while (Date.now() - lastMs < 2000) await sleep(20);
}

function aNewDomain(edge: TestEdge, round: number, port: number): string {
  const domain = `new${round}.example.com`;
  edge.publish('app-new', [{ domain, hostPort: port }], { privateIp: '127.0.2.1' });
  return domain;
}

describe('an edge with HAProxy and 2,000 domains on 5,000 backends', () => {
  let edge: TestEdge;
  let ports: number[];
  beforeAll(async () => {
    edge = await startEdge({ balancer: 'haproxy', whenFinished: onFileFinished });
    ports = await startCrowd();
    publishAll(edge, ports);
    const startedAt = performance.now();
    expect(await edge.tick()).toMatchObject({ domains, backends: nodes * portsOfNode, troubles: [] });
    console.log(`first tick: ${Math.round(performance.now() - startedAt)} ms`);
    await fetchOnceServed(edge.caddy, 'd1999.example.com');
    // The tick after a change looks at everything once more, and remembers that it is well.
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
  });

  it('takes less than four times an empty command for a tick with nothing to do, below 80 MB (L12, L41, L44)', async () => {
    const bin = inject('reeveBin');
    const { environment: env } = edge;
    const { empty, tick } = await measureInTurn(21, {
      empty: { argv: [bin, '--version'], env },
      tick: { argv: [bin, 'edge'], env },
    });
    const megabytes = await measurePeak(edge);
    console.log(
      `figure: an edge tick with nothing to do ${tick.toFixed(1)} ms, an empty command ${empty.toFixed(1)} ms: ${(tick / empty).toFixed(2)} times; ${megabytes.toFixed(1)} MB`,
    );
    expect(tick / empty).toBeLessThan(4);
    expect(megabytes).toBeLessThan(80);
  });

  it('takes a little more for a tick that has something to do', async () => {
    const peaks: Record<string, number> = {};
    publishAll(edge, ports);
    peaks['shards written again'] = await measurePeak(edge);
    edge.publish('app-0', shardOf(0, ports.slice(1)), { privateIp: addressOf(0) });
    peaks['a backend less'] = await measurePeak(edge);
    await waitForTurn(edge);
    aNewDomain(edge, 99, ports[0] as number);
    peaks['a domain more'] = await measurePeak(edge);
    const told = Object.entries(peaks).map(([what, megabytes]) => `${what} ${megabytes.toFixed(0)} MB`);
    console.log(`figure: peak memory of a tick of an edge with 5,000 backends: ${told.join(', ')}`);
  });

  it('serves a new domain within 3 s, with a certificate of its own authority', async () => {
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      await waitForTurn(edge);
      const began = performance.now();
      const domain = aNewDomain(edge, round, ports[0] as number);
      await edge.tick();
      await fetchOnceServed(edge.caddy, domain);
      times.push(Math.round(performance.now() - began));
    }
    console.log(`figure: a new domain was served after ${times.join(', ')} ms`);
    expect(Math.max(...times)).toBeLessThan(3000 * (await readSlowness()));
  });

  it('holds no more descriptors after 20 changes', async () => {
    const count = (): number =>
      descriptorsOf(edge.caddy.pid) +
      (edge.haproxy?.workers() ?? []).map(descriptorsOf).reduce((a, b) => a + b, 0);
    const before = count();
    for (let change = 0; change < 20; change += 1) {
      // Every second one is another domain, which Caddy and a reload of HAProxy learn of.
      if (change % 2 === 0) aNewDomain(edge, change, ports[0] as number);
      else edge.publish('app-0', shardOf(0, ports.slice(change)), { privateIp: addressOf(0) });
      await edge.tick();
    }
    let after = count();
    // Less the probes that are just under way, and a worker of before a reload that is just going.
    const lowest = (): number => {
      after = Math.min(after, count());
      return after;
    };
    await expect.poll(lowest, { timeout: 20_000 }).toBeLessThan(before + 100);
    console.log(`figure: descriptors of Caddy and HAProxy before and after 20 changes: ${before}, ${after}`);
  }, 300_000);
});
