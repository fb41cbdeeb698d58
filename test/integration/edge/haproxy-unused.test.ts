// A HAProxy that is to be stopped: how long what it has under way is waited for.
import { expect, it } from 'vitest';
import { masterSocket } from '../../../src/lib/edge/balancer-path.ts';
import { waitUntilUnused } from '../../../src/lib/haproxy/unused.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { type Balanced, routeTo, startBalanced, until } from '../../support/balanced.ts';
import { askBalancer, openTunnel } from '../../support/balancer-client.ts';

const bounds = { leastMs: 0, mostMs: 60_000 };

/** How long it took, once it is over. */
async function wait(
  { haproxy }: Pick<Balanced, 'haproxy'>,
  more: Partial<typeof bounds> & { signal?: AbortSignal } = {},
): Promise<number> {
  const signal = new AbortController().signal;
  const startedAt = performance.now();
  await waitUntilUnused(masterSocket(haproxy), { signal, service: 'haproxy', ...bounds, ...more });
  return performance.now() - startedAt;
}

it('is over at once where nothing is under way, and where no HAProxy runs', async () => {
  const only = await startBackendServer('only');
  const { haproxy } = await startBalanced([routeTo('a.test', [only])]);
  await askBalancer(haproxy.address, 'a.test');
  expect(await wait({ haproxy })).toBeLessThan(30_000);
  await haproxy.kill();
  expect(await wait({ haproxy })).toBeLessThan(30_000);
});

it('lasts until the last connection to a server ends, that of a worker of before a reload as well', async () => {
  const only = await startBackendServer('only');
  const routes = [routeTo('a.test', [only])];
  const { haproxy, balancer } = await startBalanced(routes);
  const old = await openTunnel(haproxy.address, 'a.test');
  await balancer.apply([...routes, routeTo('b.test', [only])]);
  await until(() => haproxy.workers().length === 2);
  const fresh = await openTunnel(haproxy.address, 'b.test');
  let isOver = false;
  const waiting = wait({ haproxy }).then(() => {
    isOver = true;
  });
  fresh.close();
  await until(() => only.tunnels() === 1);
  // Many looks of it.
  for (const word of Array.from({ length: 20 }, (_, index) => `word ${index}`)) {
    expect(await old.say(word)).toBe(`only: ${word}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(isOver).toBe(false);
  old.close();
  await waiting;
});

it('lasts no less and no longer than its bounds, and ends when we are told to stop', async () => {
  const only = await startBackendServer('only');
  const { haproxy } = await startBalanced([routeTo('a.test', [only])]);
  expect(await wait({ haproxy }, { leastMs: 700 })).toBeGreaterThanOrEqual(700);
  const tunnel = await openTunnel(haproxy.address, 'a.test');
  expect(await wait({ haproxy }, { mostMs: 700 })).toBeGreaterThanOrEqual(700);
  expect(await wait({ haproxy }, { signal: AbortSignal.timeout(700) })).toBeLessThan(30_000);
  tunnel.close();
});
