// Runs that are killed at every place: a fire is never started twice, and neither is a one-off run.
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode } from '../../support/node.ts';
import {
  aDueFire,
  aJobDeploy,
  deployDue,
  killAtChange,
  listStarts,
  setFires,
  tick,
  waitForEnd,
} from '../../support/runs.ts';

/** More than a run has changes. */
const maxRounds = 12;

describe.concurrent('a tick that is killed', { timeout: 300_000 }, () => {
  it('between the record of a fire and its start has skipped it (L61)', async ({ onTestFinished }) => {
    const since = new Date();
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'between', onTestFinished });
    const { fireMs } = await deployDue(node);
    const run = node.start(['reconcile']);
    proxy.beforeRequest = async (line) => {
      if (line !== 'POST /containers/create') return;
      run.child.kill('SIGKILL');
      await run.ended;
      throw new Error('the process that asked is dead');
    };
    expect((await run.end).signal).toBe('SIGKILL');
    proxy.beforeRequest = () => {};
    expect(node.state('cron.json')).toMatchObject({ fires: { 'between/nightly': fireMs } });
    expect(await tick(node)).toEqual([]);
    expect(await listStarts(engineSocket(), 'between', since)).toEqual([]);
  });

  it('before the record of a fire runs it at the next tick (L60)', async ({ onTestFinished }) => {
    const since = new Date();
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'before', onTestFinished });
    const { fireMs } = await deployDue(node);
    const run = node.start(['reconcile']);
    proxy.beforeRequest = async (line) => {
      if (!line.startsWith('GET /images/')) return;
      run.child.kill('SIGKILL');
      await run.ended;
      throw new Error('the process that asked is dead');
    };
    expect((await run.end).signal).toBe('SIGKILL');
    proxy.beforeRequest = () => {};
    expect(await tick(node)).toEqual(['run nightly']);
    expect(await listStarts(engineSocket(), 'before', since)).toEqual([`nightly ${fireMs}`]);
  });

  it.for([
    ['before the engine gets it', 'beforeRequest', 'fire-unasked'],
    ['when the engine has done it', 'beforeAnswer', 'fire-unheard'],
  ] as const)(
    'at any change, %s, never runs a fire twice (L51, L60, L61)',
    async ([_, moment, project], { onTestFinished }) => {
      const since = new Date();
      const proxy = await startEngineProxy(engineSocket(), onTestFinished);
      const node = makeNode({ socket: proxy.socket, project, onTestFinished });
      const { cron, fireMs, earlierMs } = aDueFire();
      const services = [aJobDeploy({ service: 'job-0', cron })];
      const fires: Record<string, number> = { 'job-0': fireMs };
      await node.deploy(services);
      setFires(node, { 'job-0': earlierMs });
      // The project's network is here from now on.
      await tick(node);
      let n = 0;
      for (let hit = true; hit; ) {
        n += 1;
        expect(n).toBeLessThan(maxRounds);
        services.push(aJobDeploy({ service: `job-${n}`, cron }));
        await node.deploy(services);
        setFires(node, { ...fires, [`job-${n}`]: earlierMs });
        hit = await killAtChange(proxy, moment, n, () => node.start(['reconcile']));
        await tick(node);
        await tick(node);
        fires[`job-${n}`] = fireMs;
      }
      const starts = await listStarts(engineSocket(), project, since);
      console.log(`killed at ${n - 1} changes; ${starts.length} of ${n + 1} fires were started`);
      expect(n).toBeGreaterThan(2);
      expect(new Set(starts).size).toBe(starts.length);
      expect(starts).toContain(`job-${n} ${fireMs}`);
    },
  );

  it.for([
    ['before the engine gets it', 'beforeRequest', 'once-unasked'],
    ['when the engine has done it', 'beforeAnswer', 'once-unheard'],
  ] as const)(
    'at any change, %s, runs a one-off run once',
    async ([_, moment, project], { onTestFinished }) => {
      const since = new Date();
      const proxy = await startEngineProxy(engineSocket(), onTestFinished);
      const node = makeNode({ socket: proxy.socket, project, onTestFinished });
      const requestedAt = new Date().toISOString();
      const ids: string[] = [];
      for (let hit = true; hit; ) {
        ids.push(`r${ids.length + 1}`);
        expect(ids.length).toBeLessThan(maxRounds);
        const id = ids.at(-1) ?? '';
        await node.deploy([aJobDeploy({ service: 'once', jobRun: { id, requestedAt } })]);
        hit = await killAtChange(proxy, moment, ids.length, () => node.start(['reconcile']));
        await tick(node);
        await tick(node);
        // The next one waits for it.
        await waitForEnd(node, 'once');
      }
      const starts = await listStarts(engineSocket(), project, since);
      expect(ids.length).toBeGreaterThan(2);
      expect(starts.sort()).toEqual(ids.map((id) => `once ${id}`).sort());
    },
  );
});
