// An edge whose store is a bucket: one list a tick, and a shard is fetched only when it is another one.
import { expect, it } from 'vitest';
import type { NodeStatus } from '../../../src/lib/cluster/wire.ts';
import { startBackend } from '../../support/backends.ts';
import { startBucket } from '../../support/bucket.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { edgeId, startEdge } from '../../support/edge.ts';

const upstream = `nodes/${edgeId}/upstream`;

it('lists at each tick, fetches what is new, and serves on while the bucket cannot be reached', async () => {
  const bucket = await startBucket();
  const edge = await startEdge({ balancer: 'haproxy', cluster: bucket.settings, env: bucket.env });
  const [first, second] = [await startBackend('one'), await startBackend('two')];
  const publish = (nodeId: string, domain: string, hostPort: number): Promise<void> =>
    bucket.write(`${upstream}/${nodeId}.json`, {
      ...{ nodeId, privateIp: '127.0.0.1', updatedAt: new Date().toISOString() },
      backends: [{ domain, hostPort }],
    });
  await publish('app-1', 'a.example.com', first.port);
  await publish('app-2', 'b.example.com', second.port);
  const done = await edge.tick();
  expect(done).toMatchObject({ outcome: 'done', domains: 2, backends: 2, troubles: [] });
  expect((await fetchOnceServed(edge.caddy, 'b.example.com', '/y')).body).toContain('two GET /y');
  expect(bucket.takeAsked()).toEqual([
    `GET ${upstream}/app-1.json`,
    `GET ${upstream}/app-2.json`,
    `LIST ${upstream}/`,
    `PUT nodes/${edgeId}/reeve.json`,
    `PUT nodes/${edgeId}/status.json`,
  ]);
  const status = (await bucket.read(`nodes/${edgeId}/status.json`)) as NodeStatus;
  expect(status.edgeRoutes).toHaveLength(2);

  expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do', actions: [] });
  expect(bucket.takeAsked()).toEqual([`LIST ${upstream}/`]);

  await publish('app-2', 'c.example.com', second.port);
  await edge.tick();
  expect((await fetchOnceServed(edge.caddy, 'c.example.com', '/z')).body).toContain('two GET /z');
  expect(bucket.takeAsked().filter((line) => !line.startsWith('PUT '))).toEqual([
    `GET ${upstream}/app-2.json`,
    `LIST ${upstream}/`,
  ]);

  bucket.proxy.fault = () => ({ kind: 'reset' });
  const away = await edge.reeve('edge');
  expect(away.status).toBe(69);
  expect(away.stderr).toContain(`cannot list "${upstream}/" in store "s3://state": `);
  expect((await fetchOnceServed(edge.caddy, 'a.example.com', '/x')).body).toContain('one GET /x');
});
