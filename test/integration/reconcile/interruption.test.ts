// A rollout that is killed or stopped at every step: what serves goes on serving, and the next run goes on from there.
import { describe, expect, it } from 'vitest';
import { startTraffic } from '../../support/edge-client.ts';
import { engineSocket } from '../../support/engine.ts';
import { type EngineProxy, startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode, type RunningReeve, type TestNode } from '../../support/node.ts';
import { everyOther } from '../../support/points.ts';
import { aWebDeploy } from '../../support/services.ts';

const versions = ['reeve-demo/web:v1', 'reeve-demo/web:v2'] as const;
const quickCheck = { path: '/healthz', intervalMs: 100, timeoutMs: 2000, healthyThreshold: 1 };
/** More than any rollout of two replicas takes. */
const maxRounds = 40;

type Round = { n: number; node: TestNode; run: RunningReeve };
/** `late`: the run was at the place, and over before the fault came. */
type Hit = 'hit' | 'late' | 'none';

/**
 * Rolls from one version to the other again and again, each time with a fault at a later place, until there is none. `last`: the last
 * place that was hit.
 */
async function rollWithFaults(
  node: TestNode,
  fault: (round: Round) => Promise<Hit>,
): Promise<{ hits: number; last: number }> {
  await node.deploy([aWebDeploy({ image: versions[0], healthCheck: quickCheck })]);
  const first = await node.reeve('reconcile', '--json');
  expect([first.status, first.json().troubles]).toEqual([0, []]);
  const running = startTraffic({ readShard: () => node.shard(), perSecond: 40, pollMs: 0 });
  let [n, hits] = [everyOther.first, 0];
  try {
    for (let [hit, round] = ['hit' as Hit, 1]; hit !== 'none'; round += 1) {
      if (round > maxRounds) throw new Error(`still being hit after ${maxRounds} rounds`);
      const image = versions[round % 2];
      await node.deploy([aWebDeploy({ image, healthCheck: quickCheck })]);
      hit = await fault({ n, node, run: node.start(['reconcile']) });
      const next = await node.reeve('reconcile', '--json');
      expect([n, next.status, next.json().troubles]).toEqual([n, 0, []]);
      expect((await node.containers()).map((container) => `${container.image} ${container.state}`)).toEqual([
        `${image} running`,
        `${image} running`,
      ]);
      expect(
        node
          .shard()
          .backends.map(({ hostPort }) => hostPort)
          .sort(),
      ).toEqual(
        Object.values(node.state('ports.json') as { ports: Record<string, number> }).flatMap((ports) =>
          typeof ports === 'object' ? Object.values(ports).sort() : [],
        ),
      );
      expect(node.state('rollouts.json')).toEqual({ version: 1, services: {} });
      if (hit !== 'hit') continue;
      hits += 1;
      n += everyOther.step;
    }
  } finally {
    const traffic = await running.stop();
    expect(traffic.failures).toEqual([]);
    expect(traffic.fewestBackends).toBe(2);
  }
  return { hits, last: n - everyOther.step };
}

/** Calls back at the nth line that tells a step. */
function atStepLine(run: RunningReeve, n: number, act: () => void): void {
  let seen = 0;
  let rest = '';
  run.child.stderr.on('data', (chunk: Buffer) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!/^(create|start|serve|abort|drain|wait|stop|remove|resume|forget) /.test(line)) continue;
      seen += 1;
      if (seen === n) act();
    }
  });
}

describe.concurrent('a rollout killed by SIGKILL', { timeout: 900_000 }, () => {
  it('after any of its steps goes on with the next run, and two replicas serve throughout (L32)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'killed', onTestFinished });
    const { hits, last } = await rollWithFaults(node, async ({ n, run }) => {
      let isKilled = false;
      atStepLine(run, n, () => {
        isKilled = true;
        run.child.kill('SIGKILL');
      });
      if ((await run.end).signal === 'SIGKILL') return 'hit';
      return isKilled ? 'late' : 'none';
    });
    console.log(`killed after ${hits} of ${last} steps`);
    expect(last).toBeGreaterThanOrEqual(11 - everyOther.step);
  });

  it.for([
    ['before the engine gets it', 'beforeRequest', 'unasked'],
    ['when the engine has done it', 'beforeAnswer', 'unheard'],
  ] as const)(
    'at any change asked of the engine, %s, goes on with the next run (L32)',
    async ([_name, moment, project], { onTestFinished }) => {
      const proxy = await startEngineProxy(engineSocket(), onTestFinished);
      const node = makeNode({ socket: proxy.socket, project, onTestFinished });
      const { hits, last } = await rollWithFaults(node, ({ n, run }) => killAtChange(proxy, moment, n, run));
      console.log(`killed at ${hits} of ${last} changes`);
      expect(last).toBeGreaterThanOrEqual(9 - everyOther.step);
    },
  );
});

/** The nth change does not come through, or its answer does not. */
async function killAtChange(
  proxy: EngineProxy,
  moment: 'beforeRequest' | 'beforeAnswer',
  n: number,
  run: RunningReeve,
): Promise<Hit> {
  let seen = 0;
  proxy[moment] = async (line) => {
    if (line.startsWith('GET ')) return;
    seen += 1;
    if (seen !== n) return;
    run.child.kill('SIGKILL');
    await run.ended;
    throw new Error('the process that asked is dead');
  };
  const end = await run.end;
  proxy[moment] = () => {};
  return end.signal === 'SIGKILL' ? 'hit' : 'none';
}

describe.concurrent('a rollout stopped by SIGTERM', { timeout: 900_000 }, () => {
  it('at any step settles it, exits 143, and the next run goes on (R59)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'stopped', onTestFinished });
    const statuses: (number | null)[] = [];
    const { hits } = await rollWithFaults(node, async ({ n, run }) => {
      let stoppedAt: number | undefined;
      atStepLine(run, n, () => {
        stoppedAt = performance.now();
        run.child.kill('SIGTERM');
      });
      const { status, signal, stderr } = await run.end;
      if (stoppedAt === undefined) return 'none';
      // After its last step it ends by itself, and may do so before it is told to.
      if (status === 0 || signal === 'SIGTERM') return 'late';
      statuses.push(status);
      expect([status, /^(reeve|warning|error):/m.exec(stderr)]).toEqual([143, null]);
      // Well within the time that systemd gives it.
      expect(performance.now() - stoppedAt).toBeLessThan(10_000);
      return 'hit';
    });
    console.log(`stopped at ${hits} steps`);
    expect(statuses).toEqual(Array(hits).fill(143));
  });
});
