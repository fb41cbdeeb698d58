// Whole ticks against a real engine: the first, the one that has nothing to do, and a rollout under traffic.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startTraffic } from '../../support/edge-client.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode, type ReeveEnd } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';
import { digestTree } from '../../support/tree.ts';

describe('a tick with nothing to do', () => {
  it('asks the engine once, writes nothing but its run record, and exits 0 (L31, L106)', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const node = makeNode({ project: 'idle', socket: proxy.socket });
    await node.deploy([aWebDeploy()]);
    const first = await node.reeve('reconcile', '--json');
    expect([first.status, first.json().outcome]).toEqual([0, 'done']);
    const before = { state: digestTree(node.stateDir), store: digestTree(node.storeDir) };
    const containers = await node.containers();
    proxy.lines.length = 0;
    const second = await node.reeve('reconcile', '--json');
    const after = { state: digestTree(node.stateDir), store: digestTree(node.storeDir) };
    expect(proxy.lines).toEqual(['GET /containers/json']);
    expect(second.json()).toMatchObject({ outcome: 'nothing-to-do', actions: [], troubles: [] });
    expect([second.status, second.stderr]).toEqual([0, '']);
    expect(changedPaths(before.state, after.state)).toEqual([
      'runs/reconcile.json',
      'runs/reconcile.json.previous',
    ]);
    expect(changedPaths(before.store, after.store)).toEqual([]);
    expect(await node.containers()).toEqual(containers);
  });
});

describe('a rollout', () => {
  it('of two replicas loses no request of an edge that polls once a second (L98-L102)', async () => {
    const node = makeNode({ project: 'asked', cluster: { intervals: { edge: '1s' } } });
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v1' })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2' })]);
    const running = startTraffic({ readShard: () => node.shard(), perSecond: 200, pollMs: 1000 });
    const end = await node.reeve('reconcile');
    const traffic = await running.stop();
    console.log(
      `rollout under traffic: ${traffic.served} served, ${traffic.failures.length} failed`,
      end.stdout,
    );
    expect(traffic.failures).toEqual([]);
    expect([end.status, traffic.fewestBackends, traffic.served > 500]).toEqual([0, 2, true]);
    expect(Object.keys(traffic.versions).sort()).toEqual(['v1', 'v2']);
    expect((await node.containers()).map(({ image }) => image)).toEqual([
      'reeve-demo/web:v2',
      'reeve-demo/web:v2',
    ]);
  });

  it('goes to its end in one run and loses nothing, even if lists of the engine are old when they arrive', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const node = makeNode({ project: 'late', socket: proxy.socket });
    proxy.beforeAnswer = (line) => (line === 'GET /containers/json' ? sleep(200) : undefined);
    // Several services, so that looks fall into the middle of one another's steps.
    const services = (image: string): object[] =>
      ['web', 'api', 'shop', 'docs'].map((service) => aWebDeploy({ service, image, replicas: 1 }));
    await node.deploy(services('reeve-demo/web:v1'));
    const first = await node.reeve('reconcile', '--json');
    expect([first.status, first.json().outcome, first.json()['unfinished']]).toEqual([0, 'done', false]);
    await node.deploy(services('reeve-demo/web:v2'));
    const running = startTraffic({ readShard: () => node.shard(), perSecond: 50, pollMs: 0 });
    const second = await node.reeve('reconcile', '--json');
    const traffic = await running.stop();
    expect(traffic.failures).toEqual([]);
    expect([traffic.fewestBackends, second.status, second.json()['unfinished']]).toEqual([4, 0, false]);
    expect(actionCounts(second)).toEqual({ create: 4, serve: 4, drain: 4, wait: 4, stop: 4, remove: 4 });
    expect((await node.containers()).map(({ image }) => image)).toEqual(Array(4).fill('reeve-demo/web:v2'));
    expect(node.state('rollouts.json')).toEqual({ version: 1, services: {} });
    expect(node.reeveJson()).toMatchObject({ converged: true });
  });
});

function actionCounts(end: ReeveEnd): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { action } of end.json().actions) counts[action] = (counts[action] ?? 0) + 1;
  return counts;
}

function changedPaths(before: Record<string, string>, after: Record<string, string>): string[] {
  const paths = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...paths].filter((path) => before[path] !== after[path]).sort();
}
