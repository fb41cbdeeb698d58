// Releases that do not come up: what served goes on serving, the reason is told, and a better release is not kept waiting.
import { describe, expect, it } from 'vitest';
import { startTraffic } from '../../support/edge-client.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode } from '../../support/node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

describe.concurrent('a release that crashes', () => {
  it('leaves the same containers serving, exits 1 with its last log lines, and is left alone for a while (R12)', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'crash', onTestFinished });
    await node.deploy([aWebDeploy()]);
    await node.reeve('reconcile');
    const before = await node.containers();
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:crash' })]);
    const running = startTraffic({ readShard: () => node.shard(), perSecond: 50, pollMs: 0 });
    const end = await node.reeve('reconcile', '--json');
    const traffic = await running.stop();
    expect([traffic.failures, traffic.fewestBackends, Object.keys(traffic.versions)]).toEqual([
      [],
      2,
      ['v1'],
    ]);
    expect(await node.containers()).toEqual(before);
    expect([end.status, end.json().outcome]).toEqual([1, 'partial']);
    const [trouble] = end.json().troubles;
    expect(trouble?.key).toBe('crash/web');
    expect(trouble?.message).toMatch(
      /^rollout aborted: it did not stay up: .+; its last log lines:\nweb crash: cannot read configuration: DATABASE_URL is not set/,
    );
    const status = node.status().services[0];
    expect([status?.state, status?.runningReplicas, status?.message]).toEqual(['error', 2, trouble?.message]);
    expect(node.reeveJson()).toMatchObject({ converged: false, failing: [{ service: 'web' }] });

    proxy.lines.length = 0;
    const again = await node.reeve('reconcile', '--json');
    expect([again.status, again.json().actions, again.json().troubles]).toEqual([1, [], [trouble]]);
    expect(proxy.lines.filter((line) => !line.startsWith('GET '))).toEqual([]);
  });

  it('makes way at once for a release that is deployed after it (R18)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'fix', onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    await node.reeve('reconcile');
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:crash' })]);
    expect((await node.reeve('reconcile')).status).toBe(1);
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([0, []]);
    expect((await node.containers()).map(({ image }) => image)).toEqual(['reeve-demo/web:v2']);
    expect(node.status().services[0]?.state).toBe('running');
  });

  it('on its first deploy is removed again, and the other services come up (L33)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'first', onTestFinished });
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:crash' }), aWorkerDeploy()]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles.map(({ key }) => key)]).toEqual([1, ['first/web']]);
    // What the engine was too slow for is put off to the next run.
    const containers = async (): Promise<string[]> => {
      await node.reeve('reconcile');
      return (await node.containers()).map(({ name, state }) => `${name} ${state}`);
    };
    await expect.poll(containers, { timeout: 60_000 }).toEqual(['launchpad_first_worker_0 running']);
    expect(node.shard().backends).toEqual([]);
  });
});

describe.concurrent('a release that never gets healthy', () => {
  it('makes way for a fix that is deployed while it is still being probed (R18)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'probing', onTestFinished });
    const healthCheck = { path: '/healthz', intervalMs: 200, timeoutMs: 10_000, healthyThreshold: 2 };
    await node.deploy([aWebDeploy({ healthCheck })]);
    await node.reeve('reconcile');
    await node.deploy([aWebDeploy({ healthCheck, image: 'reeve-demo/web:v3' })]);
    const running = startTraffic({ readShard: () => node.shard(), perSecond: 50, pollMs: 0 });
    const began = performance.now();
    const run = node.start(['reconcile', '--json']);
    await run.waitFor('create probing/web#2');
    await node.deploy([aWebDeploy({ healthCheck, image: 'reeve-demo/web:v2' })]);
    const end = await run.end;
    const traffic = await running.stop();
    expect([end.status, end.json().troubles]).toEqual([0, []]);
    expect((await node.containers()).map(({ image }) => image)).toEqual([
      'reeve-demo/web:v2',
      'reeve-demo/web:v2',
    ]);
    expect([traffic.failures, traffic.fewestBackends, Object.keys(traffic.versions)]).toEqual([
      [],
      2,
      ['v1', 'v2'],
    ]);
    // v3 alone would have been given 163 s.
    expect(performance.now() - began).toBeLessThan(60_000);
  });
});
