// The proxy beside what it could have been: a forwarder in Node.js, and Caddy. One thread each, the same instance behind them,
// the same client, one after another in the same run. REEVE_TEST_PROXY_SECONDS is how long each is measured: from 10 on the
// figures are held to what they must be (scripts/test long), below they only show that it works.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/balanced.ts';
import { freePort } from '../../support/ports.ts';
import { type Program, startNodeProgram, startProcess } from '../../support/programs.ts';
import { startProxy } from '../../support/proxy.ts';
import { askProxy } from '../../support/proxy-client.ts';

const seconds = Number(process.env['REEVE_TEST_PROXY_SECONDS'] ?? 1);
const isMeasured = seconds >= 10;
const connections = 64;

type Figures = { perSecond: number; p99Ms: number; failed: number };

function keep(program: Program): Program {
  onTestFinished(async () => {
    program.child.kill('SIGKILL');
    await program.ended;
  });
  return program;
}

async function untilServed(port: number, target: string): Promise<void> {
  await until(async () => (await askProxy(port, target).catch(() => ({ status: 0 }))).status === 200);
}

/** The quickest instance there is: another HAProxy, which answers by itself. */
async function startInstance(directory: string): Promise<number> {
  const port = await freePort();
  const file = join(directory, 'instance.cfg');
  const lines = [
    ...['global', 'nbthread 1', 'defaults', 'mode http', 'timeout client 60s', 'timeout http-keep-alive 60s'],
    ...['frontend instance', `bind 127.0.0.1:${port}`],
    'http-request return status 200 content-type text/plain string "hello from the instance"',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  keep(startProcess('/usr/sbin/haproxy', ['-db', '-f', file]));
  await untilServed(port, '/');
  return port;
}

async function startCaddy(directory: string, instance: number): Promise<number> {
  const port = await freePort();
  const file = join(directory, 'caddy.json');
  const handle = [
    { handler: 'rewrite', strip_path_prefix: '/i/a' },
    { handler: 'reverse_proxy', upstreams: [{ dial: `127.0.0.1:${instance}` }] },
  ];
  const server = { listen: [`127.0.0.1:${port}`], automatic_https: { disable: true }, routes: [{ handle }] };
  const config = { admin: { disabled: true }, apps: { http: { servers: { it: server } } } };
  writeFileSync(file, JSON.stringify(config));
  const env = { GOMAXPROCS: '1', XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory };
  keep(startProcess('/usr/bin/caddy', ['run', '--config', file], env));
  await untilServed(port, '/i/a/');
  return port;
}

async function startForwarder(instance: number): Promise<number> {
  const port = await freePort();
  const program = keep(startNodeProgram('forward-http.mjs', [String(port)]));
  await program.waitFor('listening');
  await untilServed(port, `/i/${instance}/`);
  return port;
}

/** With Apache's ab, over kept connections. */
async function measure(directory: string, url: string): Promise<Figures> {
  const csv = join(directory, 'times.csv');
  const argv = [
    '-q',
    '-k',
    '-c',
    String(connections),
    '-t',
    String(seconds),
    '-n',
    // More than any of them answers; ab takes memory for each of them at its start.
    String(seconds * 200_000),
    '-e',
    csv,
    url,
  ];
  const { status, stdout, stderr } = await startProcess('ab', argv).ended;
  if (status !== 0) throw new Error(`ab ended with ${status}: ${stderr}`);
  const numberOf = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? Number.NaN);
  const times = new Map(
    readFileSync(csv, 'utf8')
      .split('\n')
      .map((line) => line.split(',').map(Number) as [number, number]),
  );
  const refused = Number(/Non-2xx responses: +(\d+)/.exec(stdout)?.[1] ?? 0);
  return {
    perSecond: Math.round(numberOf(/Requests per second: +([\d.]+)/)),
    p99Ms: times.get(99) ?? Number.NaN,
    failed: numberOf(/Failed requests: +(\d+)/) + refused,
  };
}

describe(`throughput at ${connections} connections, ${seconds} s each`, () => {
  it('is above that of a forwarder in Node.js and of Caddy, and the slowest per cent is quicker', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'reeve-test-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const instance = await startInstance(directory);
    const proxy = await startProxy();
    await proxy.set('a', instance);
    const urls = {
      proxy: `http://${proxy.address}/i/a/`,
      node: `http://127.0.0.1:${await startForwarder(instance)}/i/${instance}/`,
      caddy: `http://127.0.0.1:${await startCaddy(directory, instance)}/i/a/`,
    };
    const figures: Record<string, Figures> = {};
    for (const [name, url] of Object.entries(urls)) {
      figures[name] = await measure(directory, url);
      const { perSecond, p99Ms } = figures[name];
      console.log(`figure: ${name}: ${perSecond} requests a second, p99 ${p99Ms.toFixed(1)} ms`);
    }
    const { proxy: own, node, caddy } = figures as Record<keyof typeof urls, Figures>;
    expect([own.failed, node.failed, caddy.failed]).toEqual([0, 0, 0]);
    const factor = isMeasured ? 2.5 : 1;
    for (const other of [node, caddy]) {
      expect(own.perSecond).toBeGreaterThan(factor * other.perSecond);
      if (isMeasured) expect(own.p99Ms).toBeLessThan(other.p99Ms / 2);
    }
  }, 600_000);
});
