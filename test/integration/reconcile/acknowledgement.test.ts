// Drains that end when the edge has said that it sends nothing to the replica any more, and those that wait for the floor.
import { readFileSync, symlinkSync, watch } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { shardFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { edgeReport, startReportingEdge, writeReport } from '../../support/reporting-edge.ts';
import { aWebDeploy } from '../../support/services.ts';

type Finished = (clean: () => void | Promise<void>) => void;

const [before, after] = ['reeve-demo/web:v1', 'reeve-demo/web:v2'];
/** An edge that polls once a minute: the floor is 90 s. */
const slowEdge = { intervals: { edge: '60s' } };

/** Two replicas of the first version run, and the second is deployed. */
async function aNodeBeforeRollout(
  project: string,
  onTestFinished: Finished,
  { drainTimeout, cluster, socket }: { drainTimeout: string; cluster: object; socket?: string },
): Promise<TestNode> {
  const node = makeNode({ project, onTestFinished, cluster: { ...cluster }, ...(socket && { socket }) });
  const rollout = { maxSurge: 1, drainTimeout, stopGrace: '5s' };
  await node.deploy([aWebDeploy({ image: before, rollout })]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  await node.deploy([aWebDeploy({ image: after, rollout })]);
  return node;
}

function countOf(end: ReeveEnd, action: string): number {
  return end.json().actions.filter((done) => done.action === action).length;
}

async function imagesOf(node: TestNode): Promise<string[]> {
  return (await node.containers()).map(({ image, state }) => `${image} ${state}`);
}

async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const startedAt = performance.now();
  const value = await work;
  return { value, ms: performance.now() - startedAt };
}

describe.concurrent('a rollout of two replicas', () => {
  it.for([
    ['0s', 0],
    ['1s', 1000],
  ] as const)(
    'takes seconds where the edge acknowledges: drainTimeout %s instead of a floor of 90 s (L99-L102)',
    async ([drainTimeout, drainMs], { onTestFinished }) => {
      const node = await aNodeBeforeRollout(`ack${drainTimeout}`, onTestFinished, {
        drainTimeout,
        cluster: slowEdge,
      });
      const edge = startReportingEdge(node);
      onTestFinished(edge.stop);
      const { value: end, ms } = await timed(node.reeve('reconcile', '--json'));
      console.log(
        `rollout of two replicas, acknowledged, drainTimeout ${drainTimeout}: ${Math.round(ms)} ms`,
      );
      expect([end.status, countOf(end, 'acknowledge')]).toEqual([0, 2]);
      expect(await imagesOf(node)).toEqual([`${after} running`, `${after} running`]);
      // Far below one floor, let alone two.
      expect(ms).toBeLessThan(45_000);
      expect(ms).toBeGreaterThan(2 * drainMs);
      expect(node.state('rollouts.json')).toEqual({ version: 1, services: {} });
    },
  );

  it.for<[string, (node: TestNode, onTestFinished: Finished) => void]>([
    ['missing', () => {}],
    ['damaged', (node) => writeReport(node, 'edge-1', '{"version": 1, "edge": {"app')],
    ['unreadable', (node) => symlinkSync('reeve.json', join(node.storeDir, 'nodes/edge-1/reeve.json'))],
    [
      'foreign',
      (node, onTestFinished) => onTestFinished(startReportingEdge(node, { nodeId: 'edge-2' }).stop),
    ],
    [
      'old',
      (node) => {
        const applied = { [node.nodeId]: shardFingerprint(node.shard()) };
        writeReport(node, 'edge-1', edgeReport('edge-1', applied));
      },
    ],
  ])(
    'waits for the floor where the edge’s report is %s (L101)',
    async ([word, report], { onTestFinished }) => {
      const cluster = { intervals: { edge: '1s' } };
      const node = await aNodeBeforeRollout(`floor${word}`, onTestFinished, { drainTimeout: '0s', cluster });
      report(node, onTestFinished);
      const { value: end, ms } = await timed(node.reeve('reconcile', '--json'));
      expect([end.status, end.json().troubles, countOf(end, 'acknowledge')]).toEqual([0, [], 0]);
      expect(end.stderr).not.toContain('edge-1');
      expect(await imagesOf(node)).toEqual([`${after} running`, `${after} running`]);
      expect(ms).toBeGreaterThan(2 * 1500);
    },
  );

  it('asks the engine once a second while it waits for an edge', async ({ onTestFinished }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = await aNodeBeforeRollout('ackpoll', onTestFinished, {
      drainTimeout: '0s',
      cluster: slowEdge,
      socket: proxy.socket,
    });
    const edge = startReportingEdge(node);
    onTestFinished(edge.stop);
    edge.pause();
    const run = node.start(['reconcile']);
    await run.waitFor('wait ackpoll/web#0');
    const asked = proxy.lines.length;
    const startedAt = performance.now();
    await vi.waitFor(() => expect(proxy.lines.length - asked).toBeGreaterThanOrEqual(5), { timeout: 30_000 });
    const passedMs = performance.now() - startedAt;
    const lists = proxy.lines.slice(asked);
    edge.goOn();
    expect((await run.end).status).toBe(0);
    expect(new Set(lists)).toEqual(new Set(['GET /containers/json']));
    // The first may follow at once; the others are a second apart.
    expect(passedMs).toBeGreaterThan(2500);
  });
});

describe.concurrent('a drain that is cut off by SIGKILL goes on from its record (L32)', () => {
  it('before the acknowledgement, which comes while nobody runs', async ({ onTestFinished }) => {
    const node = await aNodeBeforeRollout('ackkill', onTestFinished, {
      drainTimeout: '1s',
      cluster: slowEdge,
    });
    const run = node.start(['reconcile']);
    await run.waitFor('wait ackkill/web#0');
    run.child.kill('SIGKILL');
    await run.end;
    expect(JSON.stringify(node.state('rollouts.json'))).toContain('"phase":"draining"');
    const edge = startReportingEdge(node);
    onTestFinished(edge.stop);
    const { value: end, ms } = await timed(node.reeve('reconcile', '--json'));
    expect([end.status, countOf(end, 'wait'), countOf(end, 'acknowledge')]).toEqual([0, 1, 2]);
    expect(await imagesOf(node)).toEqual([`${after} running`, `${after} running`]);
    expect(ms).toBeLessThan(45_000);
  });

  it('after the acknowledgement, which need not come again', async ({ onTestFinished }) => {
    const node = await aNodeBeforeRollout('ackkilled', onTestFinished, {
      drainTimeout: '8s',
      cluster: slowEdge,
    });
    const edge = startReportingEdge(node);
    onTestFinished(edge.stop);
    const run = node.start(['reconcile']);
    await run.waitFor('acknowledge ackkilled/web#0');
    run.child.kill('SIGKILL');
    await run.end;
    edge.pause();
    writeReport(node, 'edge-1', '{"cut": "o');
    const next = node.start(['reconcile']);
    await next.waitFor('stop ackkilled/web#0: image');
    edge.goOn();
    const end = await next.end;
    expect([end.status, end.stderr]).toEqual([0, expect.not.stringContaining('ackkilled/web#0: every edge')]);
  });
});

describe.concurrent('what drains', () => {
  // So long that the events of one drain are read before the next begins.
  const drainTimeout = '8s';

  it('is named in reeve.json before a shard is without it (L99, L100)', async ({ onTestFinished }) => {
    const node = await aNodeBeforeRollout('ackorder', onTestFinished, {
      drainTimeout,
      cluster: { intervals: { edge: '1s' } },
    });
    const seen = watchWrites(node, onTestFinished);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const leaving = seen.filter(({ left }) => left.length > 0);
    expect(leaving.map(({ left, named }) => left.map((port) => named.has(port)))).toEqual([[true], [true]]);
  });

  it('is named where its service is removed, too', async ({ onTestFinished }) => {
    const node = await aNodeBeforeRollout('ackgone', onTestFinished, {
      drainTimeout,
      cluster: { intervals: { edge: '1s' } },
    });
    node.writeDesired([]);
    const seen = watchWrites(node, onTestFinished);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const leaving = seen.filter(({ left }) => left.length > 0);
    expect(leaving.map(({ left, named }) => left.map((port) => named.has(port)))).toEqual([[true, true]]);
  });
});

type ShardWrite = {
  /** Ports that this shard has no more. */
  left: readonly number[];
  /** Ports that reeve.json had named as draining by then. */
  named: ReadonlySet<number>;
};

/** The writes of shards in the order of the kernel's events, which come after each write and before the next look. */
function watchWrites(node: TestNode, onTestFinished: Finished): ShardWrite[] {
  const seen: ShardWrite[] = [];
  const named = new Set<number>();
  let ports = node.shard().backends.map(({ hostPort }) => hostPort);
  const watchFile = (directory: string, name: string, look: () => void): void => {
    const watcher = watch(directory, (_, file) => (file === name ? look() : undefined));
    onTestFinished(() => watcher.close());
  };
  watchFile(join(node.storeDir, `nodes/${node.nodeId}`), 'reeve.json', () => {
    const { draining } = JSON.parse(
      readFileSync(join(node.storeDir, `nodes/${node.nodeId}/reeve.json`), 'utf8'),
    ) as { draining: { hostPort: number }[] };
    for (const { hostPort } of draining) named.add(hostPort);
  });
  watchFile(join(node.storeDir, 'nodes/edge-1/upstream'), `${node.nodeId}.json`, () => {
    const now = node.shard().backends.map(({ hostPort }) => hostPort);
    seen.push({ left: ports.filter((port) => !now.includes(port)), named: new Set(named) });
    ports = now;
  });
  return seen;
}
