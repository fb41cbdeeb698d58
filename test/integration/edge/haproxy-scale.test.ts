// As many routes as an edge is built for.
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { Route } from '../../../src/lib/edge/route.ts';
import { startBalanced } from '../../support/balanced.ts';
import { median } from '../../support/timing.ts';

it('brings 2,000 domains to 5,000 backends, and looks at them in a moment', async () => {
  const { balancer } = await startBalanced();
  const routes = buildRoutes(await listenEverywhere());
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await work();
    return performance.now() - startedAt;
  };
  const bare = routes.map((route) => ({ ...route, backends: [] }));

  const reloadMs = await timed(() => balancer.apply(bare));
  const addMs = await timed(async () => {
    const changes = await balancer.apply(routes);
    expect(changes).toHaveLength(5_001);
  });
  const looks: number[] = [];
  const cpuBefore = process.cpuUsage();
  for (let look = 0; look < 11; look += 1) {
    looks.push(await timed(async () => expect(await balancer.compare(routes)).toEqual({ changes: [] })));
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const drainMs = await timed(() => balancer.apply(bare));
  const deleteMs = await timed(async () => expect(await balancer.apply(bare)).toHaveLength(5_000));

  const told = Object.entries({ reloadMs, addMs, compareMs: median(looks), drainMs, deleteMs });
  console.log(told.map(([name, ms]) => `${name} ${Math.round(ms)}`).join(', '));
  console.log(`a look costs ${Math.round((user + system) / 11_000)} ms of our processor time`);
  expect(await balancer.compare(bare)).toEqual({ changes: [] });
});

/** Two or three servers a domain, every other one probed. */
function buildRoutes(port: number): Route[] {
  let count = 0;
  return Array.from({ length: 2_000 }, (_, index) => ({
    domain: `d${index}.example.com`,
    backends: Array.from({ length: index % 2 === 0 ? 2 : 3 }, () => {
      count += 1;
      return { host: `127.0.${count >> 8}.${count & 255}`, port };
    }),
    ...(index % 2 === 0 ? {} : { healthPath: '/health' }),
  }));
}

/** One server that answers probes at every address of the loopback. */
async function listenEverywhere(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.end('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
