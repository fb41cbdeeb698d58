// Scheduled services on a real engine: one container a fire, what becomes of it, and what is told.
import { mkdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker, makeNode } from '../../support/node.ts';
import {
  actionsOf,
  aDueFire,
  aJobDeploy,
  deployAndTick,
  deployDue,
  listStarts,
  setFires,
  startEarlierRun,
  tick,
  waitForEnd,
} from '../../support/runs.ts';
import { aWorkerDeploy } from '../../support/services.ts';

describe.concurrent('a schedule', () => {
  it('that is new is armed and runs nothing, whatever it would have run before (L50, L55, L59, L66, L67, L70)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'armed', onTestFinished });
    const { cron, fireMs } = aDueFire();
    await node.deploy([aJobDeploy({ cron })]);
    expect(await tick(node)).toEqual(['arm nightly']);
    expect(await tick(node)).toEqual([]);
    expect(await node.containers()).toEqual([]);
    const nextRunAt = new Date(fireMs + 86_400_000).toISOString();
    expect(node.status().services).toMatchObject([
      {
        state: 'running',
        message: `scheduled, next run ${nextRunAt}`,
        cron: { lastRunAt: null, lastExitCode: null, nextRunAt },
      },
    ]);
    expect(node.reeveJson()).toMatchObject({ converged: true, failing: [] });
  });

  it('starts one container for its fire, which is not restarted and is judged by its exit code (L51, L52, L53, L54, L57, L58, L64, L65, L66, L68)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'failing', onTestFinished });
    const { fireMs, firedAt } = await deployDue(node, { env: { CODE: '3' }, ingress: undefined });
    expect(await tick(node)).toEqual(['run nightly']);
    await waitForEnd(node);
    expect(await tick(node)).toEqual([]);
    const [run, ...others] = await node.containers();
    expect([run?.name, run?.state, run?.restartCount, others]).toEqual([
      'launchpad_failing_nightly_0',
      'exited',
      0,
      [],
    ]);
    expect(run?.labels['launchpad.cronFire']).toBe(String(fireMs));
    const policy = ['inspect', '--format', '{{.HostConfig.RestartPolicy.Name}}', run?.id ?? ''];
    expect((await askDocker(node.socket, policy)).trim()).toBe('no');
    expect(node.state('cron.json')).toMatchObject({ fires: { 'failing/nightly': fireMs } });
    expect(await askDocker(node.socket, ['logs', run?.id ?? ''])).toContain('job v1: ends with 3');
    expect(node.status().services).toMatchObject([
      {
        state: 'running',
        message: expect.stringMatching(/^last run failed \(exit 3\), next run /),
        cron: { lastRunAt: firedAt, lastExitCode: 3 },
      },
    ]);
  });

  it('whose last run failed holds up no deploy (L69)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'converges', onTestFinished });
    await deployDue(node, { env: { CODE: '1' } });
    await tick(node);
    await waitForEnd(node);
    await deployAndTick(node, [aJobDeploy({ cron: '0 0 1 1 *', env: { CODE: '1' } })]);
  });

  it('leaves out the fire that comes while a run is in progress (L62)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'overlap', onTestFinished });
    const { fireMs, earlierMs } = await deployDue(node);
    const id = await startEarlierRun(node, { fireMs: earlierMs, env: { LASTS: '600' } });
    expect(await tick(node)).toEqual(['join nightly', 'skip nightly']);
    expect(node.status().services).toMatchObject([{ message: expect.stringMatching(/^run in progress, /) }]);
    await askDocker(node.socket, ['kill', id]);
    expect(await tick(node)).toEqual([]);
    expect((await node.containers()).map((container) => container.id)).toEqual([id]);
    expect(node.state('cron.json')).toMatchObject({ fires: { 'overlap/nightly': fireMs } });
  });

  it('keeps the last run until the next can start: an image that cannot be had costs neither it nor the fire (L64, L69)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'nopull', onTestFinished });
    const image = '127.0.0.1:1/none:v1';
    const { cron, fireMs, earlierMs } = await deployDue(node, { image });
    const id = await startEarlierRun(node, { fireMs: earlierMs });
    await waitForEnd(node);
    const end = await node.reeve('reconcile', '--json');
    expect(end.status).toBe(1);
    expect(end.json().troubles).toMatchObject([
      { key: 'nopull/nightly', message: expect.stringContaining(image) },
    ]);
    const status = node.status().services.find(({ service }) => service === 'nightly');
    expect(status).toMatchObject({ state: 'error', message: expect.stringContaining(image) });
    await deployAndTick(node, [aJobDeploy({ cron, image }), aWorkerDeploy()]);
    expect((await node.containers()).map((container) => container.id)).toContain(id);
    await node.deploy([aJobDeploy({ cron })]);
    await tick(node);
    const fires = (await node.containers()).map(({ labels }) => labels['launchpad.cronFire']);
    expect(fires).toEqual([String(fireMs)]);
  });

  it('refuses a run whose fire cannot be recorded, and runs it once it can be (L60)', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'unrecorded', onTestFinished });
    const { fireMs } = await deployDue(node);
    const file = join(node.stateDir, 'cron.json');
    let isBroken = false;
    proxy.beforeRequest = (line) => {
      if (isBroken || !line.startsWith('GET /images/')) return;
      isBroken = true;
      renameSync(file, `${file}.aside`);
      mkdirSync(join(file, 'in-the-way'), { recursive: true });
    };
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [{ key: 'unrecorded/nightly', message: expect.stringContaining('cron.json') }],
    ]);
    expect(proxy.lines.filter((line) => line.startsWith('POST /containers'))).toEqual([]);
    rmdirSync(join(file, 'in-the-way'));
    rmdirSync(file);
    renameSync(`${file}.aside`, file);
    expect(await tick(node)).toEqual(['run nightly']);
    expect(node.state('cron.json')).toMatchObject({ fires: { 'unrecorded/nightly': fireMs } });
  });

  it('makes one run of three weeks of minutes, the latest (L63, R22)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'behind', onTestFinished });
    await node.deploy([aJobDeploy({ cron: '* * * * *', env: { LASTS: '600' } })]);
    setFires(node, { nightly: Date.now() - 21 * 86_400_000 });
    const before = new Date();
    await node.reeve('reconcile');
    const starts = await listStarts(node.socket, 'behind', before);
    expect(starts).toHaveLength(1);
    const fireMs = Number(starts[0]?.split(' ')[1]);
    expect(fireMs).toBeGreaterThan(before.getTime() - 60_000);
    expect(fireMs).toBeLessThanOrEqual(Date.now());
  });

  it('whose last fire lies two days ahead counts from now, and warns once (R23)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'ahead', onTestFinished });
    const { cron } = aDueFire();
    await node.deploy([aJobDeploy({ cron })]);
    setFires(node, { nightly: Date.now() + 2 * 86_400_000 });
    const warnings = async (): Promise<number> =>
      ((await node.reeve('reconcile')).stderr.match(/^warning: .*lies in the future/gm) ?? []).length;
    expect([await warnings(), await warnings()]).toEqual([1, 0]);
    const { fires } = node.state('cron.json') as { fires: Record<string, number> };
    expect(fires['ahead/nightly']).toBeLessThanOrEqual(Date.now());
    expect(await node.containers()).toEqual([]);
  });

  it("goes on where launch-pad's agent has left it (L58)", async ({ onTestFinished }) => {
    const node = makeNode({ project: 'imported', onTestFinished });
    const { cron, fireMs, earlierMs } = aDueFire();
    await node.deploy([aJobDeploy({ cron })]);
    mkdirSync(join(node.root, 'launch-pad'), { recursive: true });
    const cronFires = { 'imported/nightly': earlierMs, 'backup:imported/nightly': 1, 'imported/gone': 1 };
    writeFileSync(join(node.root, 'launch-pad/state.json'), JSON.stringify({ ports: {}, cronFires }));
    await tick(node);
    expect(await node.containers()).toMatchObject([{ labels: { 'launchpad.cronFire': String(fireMs) } }]);
    expect(node.state('cron.json')).toMatchObject({
      fires: { 'imported/nightly': fireMs, 'backup:imported/nightly': 1 },
    });
    expect(node.state('cron.json')).not.toHaveProperty(['fires', 'imported/gone']);
  });

  it('runs with its secrets, and a change of its definition waits for the next fire (L50)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'secret', onTestFinished });
    node.writeSecret('secret/nightly/TOKEN', 'hush');
    const { cron } = await deployDue(node, { secrets: ['TOKEN'] });
    await tick(node);
    const [run] = await node.containers();
    expect(run?.env).toContain('TOKEN=hush');
    await node.deploy([aJobDeploy({ cron, secrets: ['TOKEN'], env: { A: '1' } })]);
    expect(await tick(node)).toEqual([]);
    expect((await node.reeve('restart', 'secret/nightly', '--yes')).status).toBe(0);
    expect(await tick(node)).toEqual([]);
    expect((await node.containers()).map(({ id }) => id)).toEqual([run?.id]);
  });

  it('that is held runs nothing, unless it is asked for by name; plan tells what is due', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'held', onTestFinished });
    await deployDue(node);
    const plan = await node.reeve('plan', '--json');
    expect([plan.status, actionsOf(plan)]).toEqual([2, ['run nightly']]);
    expect((await node.reeve('hold', 'held/nightly', '--for', '1h', '--reason', 'maintenance')).status).toBe(
      0,
    );
    const end = await node.reeve('reconcile', '--json');
    expect([end.json().outcome, await node.containers()]).toEqual(['deferred', []]);
    expect(actionsOf(await node.reeve('reconcile', '--json', '--service', 'held/nightly'))).toEqual([
      'run nightly',
    ]);
    const history = await node.reeve('history');
    expect(history.stdout).toContain('run held/nightly');
  });

  it('takes the place of a service that ran on, and that takes its place again (L50)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'changes', onTestFinished });
    const { cron } = aDueFire();
    await node.deploy([aWorkerDeploy({ service: 'nightly' })]);
    await tick(node);
    await node.deploy([aJobDeploy({ cron })]);
    await tick(node);
    expect(await node.containers()).toEqual([]);
    setFires(node, { nightly: Date.now() - 86_400_000 });
    await tick(node);
    await waitForEnd(node);
    await node.deploy([aWorkerDeploy({ service: 'nightly' })]);
    await tick(node);
    const left = (await node.containers()).map(({ image, state }) => [image, state]);
    expect(left).toEqual([['reeve-demo/worker:v1', 'running']]);
    expect(node.state('cron.json')).toMatchObject({ fires: {} });
  });

  it('that is no longer desired goes with its run (L58)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'leaves', onTestFinished });
    await deployDue(node, { env: { LASTS: '600' } });
    await tick(node);
    node.writeDesired([]);
    expect(await tick(node)).toEqual(['stop nightly', 'remove nightly', 'forget nightly']);
    expect([await node.containers(), node.state('cron.json')]).toEqual([
      [],
      expect.objectContaining({ fires: {} }),
    ]);
  });

  it('keeps its last run from prune, which takes that of a service that is gone (L64)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'pruned', onTestFinished });
    await deployDue(node);
    await tick(node);
    await waitForEnd(node);
    const kept = await node.reeve('prune', '--json');
    expect([kept.json().actions, (await node.containers()).length]).toEqual([[], 1]);
    node.writeDesired([]);
    const end = await node.reeve('prune', '--json');
    expect(end.json().actions).toMatchObject([{ action: 'removeRun', outcome: 'done' }]);
    expect(await node.containers()).toEqual([]);
  });

  it('that names a program which is not there tells so until the next fire, and that fire is over (L60, L61)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'badstart', onTestFinished });
    const { firedAt } = await deployDue(node, { volumes: [{ name: 'data', path: '/bin/busybox' }] });
    const end = await node.reeve('reconcile', '--json');
    expect(end.status).toBe(1);
    const message = expect.stringContaining(`the run of ${firedAt} was not started`);
    expect(end.json().troubles).toMatchObject([{ message }]);
    expect(await node.containers()).toEqual([]);
    const next = await node.reeve('reconcile', '--json');
    expect([next.json().actions, next.json().troubles]).toMatchObject([[], [{ message }]]);
    expect(node.status().services).toMatchObject([{ state: 'error', message }]);
    expect(node.reeveJson()).toMatchObject({ converged: true });
  });
});
