// Connections to instances are kept and used again: none may ever carry a request to another one.
// REEVE_TEST_PROXY_REQUESTS sets how many there are: 1000000 for the proof, some minutes (scripts/test long).
import { describe, expect, it } from 'vitest';
import { startNodeProgram } from '../../support/programs.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import {
  type LoadResult,
  type NamingInstance,
  sendLoad,
  startNamingInstances,
} from '../../support/proxy-load.ts';

const requests = Number(process.env['REEVE_TEST_PROXY_REQUESTS'] ?? 20_000);

/** A random one of the instances each time; each fifth is a POST, which takes a connection of its own. */
function load({ port }: TestProxy, instances: readonly NamingInstance[], count: number): Promise<LoadResult> {
  return sendLoad(port, {
    connections: 64,
    requests: count,
    next: (nth) => {
      const { name } = instances[Math.floor(Math.random() * instances.length)] as NamingInstance;
      return { name, path: `/i/${name}/${nth}`, method: nth % 5 === 0 ? 'POST' : 'GET' };
    },
  });
}

async function start(): Promise<{ proxy: TestProxy; instances: NamingInstance[] }> {
  const [proxy, instances] = [await startProxy(), await startNamingInstances(10, 3)];
  for (const { name, ports } of instances) await proxy.set(name, ports[0] as number);
  return { proxy, instances };
}

describe('10 instances over 64 connections', () => {
  it(`whose registrations change all the while: of ${requests} requests none reaches the wrong one (A57, A58)`, async () => {
    const { proxy, instances } = await start();
    const words = instances.map(({ name, ports }) => `${name}=${ports.join(',')}`);
    const registrar = startNodeProgram('register-instances.ts', [proxy.paths.runDir, ...words]);
    await registrar.waitFor('begun');
    const result = await load(proxy, instances, requests);
    registrar.child.stdin.end();
    const { status, stdout, stderr } = await registrar.ended;
    expect([status, stderr]).toEqual([0, '']);
    const changes = Number(/registered (\d+)/.exec(stdout)?.[1]);
    console.log(
      `figure: ${result.requests} requests in ${result.seconds.toFixed(1)} s, ${changes} registrations`,
    );
    expect(result.wrong).toEqual([]);
    expect(result.failed).toEqual([]);
    expect(result.requests).toBe(requests);
    expect(changes).toBeGreaterThan(20);
    expect(readReuse(await proxy.tell('show stat'), 'plain')).toBeGreaterThan(0);
  }, 1_800_000);

  it('of which one had the port of another would be seen by this test', async () => {
    const { proxy, instances } = await start();
    const [first, second] = instances as [NamingInstance, NamingInstance];
    await proxy.tell(`set map ${proxy.at.instancesMap} ${first.name} ${second.ports[1]}`);
    const { wrong } = await load(proxy, instances, 500);
    expect(wrong[0]).toBe(`${first.name} asked, ${second.name} ${second.ports[1]} answered`);
  });

  it('go to the new port at once: no request after a registration has an older one (A57)', async () => {
    const { proxy, instances } = await start();
    const [{ name, ports }] = instances as [NamingInstance];
    for (let change = 0; change < 100; change += 1) {
      const port = ports[change % ports.length] as number;
      await proxy.set(name, port);
      const { wrong, failed } = await sendLoad(proxy.port, {
        connections: 4,
        requests: 8,
        next: () => ({ path: `/i/${name}/`, name: `${name} ${port}` }),
      });
      expect([...wrong, ...failed]).toEqual([]);
    }
  });
});

/** Requests of a backend that went out on a kept connection. */
function readReuse(stats: string, backend: string): number {
  const [header = '', ...lines] = stats.replace(/^# /, '').split('\n');
  const row = lines
    .map((line) => line.split(','))
    .find(([name, kind]) => name === backend && kind === 'BACKEND');
  return Number(row?.[header.split(',').indexOf('reuse')] ?? 0);
}
