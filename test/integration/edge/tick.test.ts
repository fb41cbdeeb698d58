// Whole ticks of an edge against the real Caddy and HAProxy, in both ways to balance.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ShardBackend } from '../../../src/lib/cluster/wire.ts';
import { startBackend } from '../../support/backends.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { edgeId, startEdge } from '../../support/edge.ts';
import { digestTree } from '../../support/tree.ts';

const modes = ['caddy', 'haproxy'] as const;
const actionsOf = ({ actions }: { actions: { action: string }[] }): string[] =>
  actions.map(({ action }) => action);

const toShard = ({ port }: { port: number }): ShardBackend => ({ domain: 'a.example.com', hostPort: port });

describe.each(modes)('an edge that balances by %s', (balancer) => {
  it('serves each domain over HTTPS from its backends, and has nothing to do afterwards (L42-L46)', async () => {
    const edge = await startEdge({ balancer });
    const [first, second] = [await startBackend('one'), await startBackend('two')];
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: first.port, healthPath: '/health' }]);
    edge.publish('app-2', [{ domain: 'b.example.com', hostPort: second.port }], { privateIp: '127.0.0.1' });
    const done = await edge.tick();
    expect(done).toMatchObject({ outcome: 'done', domains: 2, backends: 2, troubles: [] });
    expect((await fetchOnceServed(edge.caddy, 'a.example.com', '/x')).body).toContain('one GET /x');
    expect((await fetchOnceServed(edge.caddy, 'b.example.com', '/y')).body).toContain('two GET /y');
    const pushes = (await edge.caddy.changes()).length;
    const store = digestTree(edge.storeDir);
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do', actions: [], troubles: [] });
    expect(await edge.caddy.changes()).toHaveLength(pushes);
    expect(digestTree(edge.storeDir)).toEqual(store);
  });

  it('tells readers what it routes and which shards are in force (L49, L111)', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    expect(edge.status()).toMatchObject({
      nodeId: edgeId,
      services: [],
      caddy: { managed: true, error: null, lastReloadAt: expect.stringMatching(/Z$/) },
      edgeRoutes: [{ domain: 'a.example.com', upstreams: 1 }],
      host: { memoryTotalMb: expect.any(Number) },
    });
    expect(edge.reeveJson()).toMatchObject({
      nodeId: edgeId,
      converged: true,
      failing: [],
      edge: {
        balancer,
        applied: { 'app-1': expect.stringMatching(/^[0-9a-f]{64}$/) },
        rejected: [],
        repairs: 0,
      },
    });
  });

  it('brings Caddy back to its routes when it has come up with its boot configuration (L46, L47, R46)', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    await edge.caddy.restart();
    const repaired = await edge.tick();
    expect(repaired.actions).toMatchObject([
      { action: 'push', reason: 'it no longer has what it was given' },
    ]);
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).status).toBe(200);
    expect(edge.reeveJson().edge?.repairs).toBe(1);
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
  });

  it('says in its status that Caddy does not answer, and exits 69 (L48, L49)', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    const { applied } = edge.memory();
    await edge.caddy.stop();
    edge.publish('app-1', []);
    const failed = await edge.tick(69);
    expect(failed.troubles.map(({ subject }) => subject)).toEqual(['caddy']);
    expect(edge.status().caddy.error).toMatch(/^caddy \/load: cannot .*nothing listens there/);
    expect([edge.reeveJson().converged, edge.reeveJson().edge?.applied]).toEqual([false, applied]);
    await edge.caddy.restart();
    expect((await edge.tick()).outcome).toBe('done');
    expect([edge.status().caddy.error, edge.reeveJson().converged]).toEqual([null, true]);
  });

  it('keeps what it serves while the store cannot be read, and says so', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    await fetchOnceServed(edge.caddy, 'a.example.com');
    const pushes = (await edge.caddy.changes()).length;
    rmSync(edge.storeDir, { recursive: true });
    const end = await edge.reeve('edge');
    expect([end.status, end.stderr]).toEqual([69, expect.stringContaining(edge.storeDir)]);
    expect((await edge.caddy.fetch('a.example.com', '/')).status).toBe(200);
    expect(await edge.caddy.changes()).toHaveLength(pushes);
  });

  it('removes nothing because a store has no shard at all any more', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    await fetchOnceServed(edge.caddy, 'a.example.com');
    rmSync(join(edge.storeDir, 'nodes', edgeId, 'upstream'), { recursive: true });
    const failed = await edge.tick(1);
    expect(failed).toMatchObject({
      actions: [],
      troubles: [{ message: 'no shard is left: the last routes stay' }],
    });
    expect((await edge.caddy.fetch('a.example.com', '/')).status).toBe(200);
  });

  it('says what it would do and does nothing with --dry-run', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    const before = digestTree(edge.storeDir);
    const end = await edge.reeve('edge', '--dry-run');
    const changes = balancer === 'caddy' ? ['push'] : ['write', 'reload', 'push'];
    expect([end.status, end.stdout.split('\n').map((line) => line.split(' ')[0])]).toEqual([
      2,
      [...changes, '1', ''],
    ]);
    expect([
      await edge.caddy.changes(),
      digestTree(edge.storeDir),
      existsSync(join(edge.root, 'state')),
    ]).toEqual([[], before, false]);
    await edge.tick();
    const quiet = await edge.reeve('edge', '--dry-run');
    expect([quiet.status, quiet.stdout]).toEqual([0, 'nothing to do: 1 domain, 1 backend\n']);
  });

  it('goes on from a memory that is lost or damaged', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    const pushes = (await edge.caddy.changes()).length;
    for (const name of ['edge.json', 'edge.json.previous'])
      rmSync(join(edge.root, 'state', name), { force: true });
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do', actions: [] });
    writeFileSync(join(edge.root, 'state/edge.json'), '\0'.repeat(200));
    rmSync(join(edge.root, 'state/edge.json.previous'), { force: true });
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do', actions: [] });
    expect(await edge.caddy.changes()).toHaveLength(pushes);
  });
});

describe('an edge whose Caddy balances', () => {
  it('adds at once, removes at once what drains, and holds what merely vanishes', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    const backends = await Promise.all([startBackend('one'), startBackend('two'), startBackend('three')]);
    const [one, two, three] = backends.map(toShard) as [ShardBackend, ShardBackend, ShardBackend];
    const served = (): number => edge.status().edgeRoutes[0]?.upstreams ?? 0;
    edge.publish('app-1', [one, two]);
    await edge.tick();
    edge.publish('app-1', [one, two, three]);
    expect([actionsOf(await edge.tick()), served()]).toEqual([['push'], 3]);
    // Gone without a word: it may be back in a moment.
    edge.publish('app-1', [one, two]);
    expect([actionsOf(await edge.tick()), served(), edge.reeveJson().edge?.applied]).toEqual([[], 3, {}]);
    edge.publish('app-1', [one, two, three]);
    expect([actionsOf(await edge.tick()), served()]).toEqual([[], 3]);
    // Gone on purpose.
    edge.publish('app-1', [one, two]);
    mkdirSync(join(edge.storeDir, 'nodes/app-1'), { recursive: true });
    writeFileSync(
      join(edge.storeDir, 'nodes/app-1/reeve.json'),
      JSON.stringify({ nodeId: 'app-1', draining: [three] }),
    );
    expect([actionsOf(await edge.tick()), served()]).toEqual([['push'], 2]);
    expect(Object.keys(edge.reeveJson().edge?.applied ?? {})).toEqual(['app-1']);
  });

  it('changes Caddy at most once in two seconds', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    const backends = await Promise.all([startBackend('one'), startBackend('two')]);
    const all = backends.map(toShard);
    edge.publish('app-1', all.slice(0, 1));
    await edge.tick();
    const first = Date.parse(edge.status().caddy.lastReloadAt ?? '');
    edge.publish('app-1', all);
    await edge.tick();
    const second = Date.parse(edge.status().caddy.lastReloadAt ?? '');
    expect(second - first).toBeGreaterThanOrEqual(1990);
  });
});

describe('an edge with HAProxy', () => {
  it('never tells Caddy of backends, only of domains', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const backends = await Promise.all([startBackend('one'), startBackend('two')]);
    const [one, two] = backends.map(toShard) as [ShardBackend, ShardBackend];
    edge.publish('app-1', [one]);
    await edge.tick();
    await fetchOnceServed(edge.caddy, 'a.example.com');
    const pushes = (await edge.caddy.changes()).length;
    edge.publish('app-1', [one, two]);
    expect(actionsOf(await edge.tick())).toEqual(['write', 'add']);
    edge.publish('app-1', [two]);
    expect(actionsOf(await edge.tick())).toEqual(['write', 'drain']);
    expect((await edge.caddy.fetch('a.example.com', '/')).body).toContain('two');
    // A domain without a backend stays a while: Caddy is not told.
    edge.publish('app-1', []);
    await edge.tick();
    expect((await edge.caddy.fetch('a.example.com', '/')).status).toBe(503);
    expect(await edge.caddy.changes()).toHaveLength(pushes);
    expect([edge.status().edgeRoutes, Object.keys(edge.reeveJson().edge?.applied ?? {})]).toEqual([
      [],
      ['app-1'],
    ]);
  });

  it('is not reloaded for a probed domain that loses its last backend for a moment (R44)', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const backend = await startBackend('one');
    const shard = [{ domain: 'a.example.com', hostPort: backend.port, healthPath: '/up' }];
    edge.publish('app-1', shard);
    await edge.tick();
    // The one of before the reload goes.
    await expect.poll(() => edge.haproxy?.workers(), { timeout: 30_000 }).toHaveLength(1);
    const workers = edge.haproxy?.workers();
    const pushes = (await edge.caddy.changes()).length;
    for (let flap = 1; flap <= 20; flap += 1) {
      edge.publish('app-1', []);
      expect(actionsOf(await edge.tick())).toEqual(['write', 'drain']);
      edge.publish('app-1', shard);
      expect(actionsOf(await edge.tick())).toEqual(['write', 'ready']);
    }
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).body).toContain('one');
    expect([edge.haproxy?.workers(), (await edge.caddy.changes()).length]).toEqual([workers, pushes]);
  });

  it('keeps the file that HAProxy starts from true while it is down, and says that it is', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const backends = await Promise.all([startBackend('one'), startBackend('two')]);
    const [one, two] = backends.map(toShard) as [ShardBackend, ShardBackend];
    edge.publish('app-1', [one]);
    await edge.tick();
    await fetchOnceServed(edge.caddy, 'a.example.com');
    await edge.haproxy?.kill();
    edge.publish('app-1', [two]);
    const failed = await edge.tick(69);
    expect(failed.troubles).toMatchObject([{ subject: 'balancer' }]);
    expect(edge.status().caddy.error).toMatch(/^balancer: cannot .*HAProxy/);
    await edge.haproxy?.start();
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).body).toContain('two');
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
  });
});

describe('a machine that is no edge', () => {
  it('is told the command that is meant for it, and nothing is done (L13, L14)', async () => {
    const edge = await startEdge({ balancer: 'caddy', cluster: { role: 'app' } });
    const end = await edge.reeve('edge');
    expect([end.status, end.stderr]).toEqual([78, expect.stringContaining('run `reeve reconcile` instead')]);
    expect(await edge.caddy.changes()).toEqual([]);
  });
});
