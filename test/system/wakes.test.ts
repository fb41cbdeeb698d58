// Floods, locks and broken configurations: whatever comes, the wake's path unit lives and what was asked for is done.
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, quickIntervals, startInstalled } from '../support/installed.ts';
import type { Program } from '../support/programs.ts';
import { aWebDeploy } from '../support/services.ts';
import { appTimers, describeHost, nextRuns, tellFigure } from '../support/system.ts';

const lock = '/run/reeve/locks/reconcile.lock';
const wake = '/run/reeve/wake/reconcile';

/** No timer helps here: what happens, a wake has brought about. */
const wakesOnly = { intervals: { ...quickIntervals, tick: '1h', liveness: '30s' } };

/** A rollout that takes seconds, so that it is seen under way. */
const slow = { healthCheck: { path: '/healthz', intervalMs: 200, timeoutMs: 2000, healthyThreshold: 15 } };

describeHost('a node whose ticks come from wakes', () => {
  let node: Installed;
  let host: Host;
  let round = 0;
  beforeAll(async () => {
    node = await startInstalled({ cluster: wakesOnly });
    host = node.host;
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
  });
  afterAll(() => host?.stop());
  beforeEach(idle);

  async function idle(): Promise<void> {
    await host.waitFor('the tick to end', async () => {
      const { ActiveState } = await host.show('reeve-reconcile.service', 'ActiveState');
      return ActiveState === 'inactive' || ActiveState === 'failed';
    });
  }

  /** A change without work for containers, and how to see that a tick has looked at it. */
  async function deployQuietly(): Promise<void> {
    round += 1;
    await node.deploy([aWebDeploy({ rollout: { drainTimeout: '0s', stopGrace: `${5 + round}s` } })]);
  }

  /** A tick, which may have been under way, has taken in what was deployed last, and no wake is left. */
  async function expectHandled(): Promise<void> {
    const { updatedAt } = await node.desired();
    await host.waitFor('a tick that knows of the last deploy', async () => {
      const { endedAt, outcome } = await node.runOf('reconcile');
      const { desired } = JSON.parse(await node.store.read('nodes/web-1/reeve.json'));
      const isKnown = desired?.updatedAt === updatedAt;
      return isKnown && endedAt !== null && outcome !== 'failed' && !(await host.exists(wake));
    });
    await expectUnitsAlive();
  }

  async function expectUnitsAlive(): Promise<void> {
    expect(await host.show('reeve-reconcile.path', 'ActiveState', 'Result')).toEqual({
      ActiveState: 'active',
      Result: 'success',
    });
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
  }

  it('lives through 500 wakes in a second, and looks once more after the last one (R60, O45)', async () => {
    const startedAt = performance.now();
    for (let count = 0; count < 500; count += 1) {
      writeFileSync(host.outside(wake), '');
      const dueMs = startedAt + count * 2 - performance.now();
      if (dueMs > 0) await new Promise((tick) => setTimeout(tick, dueMs));
    }
    tellFigure(`500 wakes in ${Math.round(performance.now() - startedAt)} ms`);
    await deployQuietly();
    await expectHandled();
  });

  it('takes a file that is renamed into place for a wake, and a directory, too (O46)', async () => {
    await host.sh(`: >/run/reeve/wake/.new; mv /run/reeve/wake/.new ${wake}`);
    await host.waitFor('the wake to be taken', async () => !(await host.exists(wake)));
    await idle();
    // It may be taken before it has its file.
    await host.sh(`mkdir ${wake}; (: >${wake}/file) 2>/dev/null || true`);
    await host.waitFor('the wake to be taken', async () => !(await host.exists(wake)));
    await deployQuietly();
    await expectHandled();
  });

  it('lets five of everything start at once: each does its work or says that the lock is busy (O43)', async () => {
    const five = ['reconcile', 'heartbeat', 'plan', 'status', 'prune'];
    const ends = await Promise.all(five.flatMap((command) => five.map(() => node.reeve(command))));
    const failed = ends.filter(({ status }) => status !== 0 && status !== 75);
    expect(failed).toEqual([]);
    expect(
      ends.filter(({ status }) => status === 75).every(({ stderr }) => /held by pid \d+/.test(stderr)),
    ).toBe(true);
    await deployQuietly();
    await expectHandled();
  });

  it('does what was deployed while somebody’s shell held the lock (R60, O52)', async () => {
    const holder = await holdLock();
    for (let wakes = 0; wakes < 8; wakes += 1) await deployQuietly();
    await host.waitFor(
      'the tick to wait',
      async () => (await host.show('reeve-reconcile.service', 'ActiveState')).ActiveState === 'activating',
    );
    await expectWaiting();
    await release(holder);
    await expectHandled();
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  });

  it('does what was deployed during a run right after it, without waiting for a timer (O45)', async () => {
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2', ...slow })]);
    await host.waitFor('the rollout', async () => (await node.runOf('reconcile')).endedAt === null);
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v1' })]);
    await node.settled('reeve-demo/web:v1');
    await host.waitFor('the wake to be taken', async () => !(await host.exists(wake)));
    await idle();
  });

  it('does not let a reconcile by hand and its own overlap: the loser says who holds the lock and exits 75', async () => {
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2', ...slow })]);
    const [unitRun, { MainPID }] = await host.waitFor('the rollout', async () => {
      const run = await node.runOf('reconcile');
      return run.endedAt === null && ([run, await host.show('reeve-reconcile.service', 'MainPID')] as const);
    });
    expect(await node.reeve('reconcile')).toMatchObject({
      status: 75,
      stdout: '',
      stderr: expect.stringMatching(new RegExp(`lock "?reconcile"?.*${MainPID}`)),
    });
    // One that waits begins after the end of the other.
    const byHand = node.reeve('reconcile', '--wait', '120', '--json');
    await node.settled('reeve-demo/web:v2');
    const end = await byHand;
    expect([end.status, JSON.parse(end.stdout).outcome]).toEqual([0, 'nothing-to-do']);
    const last = await node.runOf('reconcile');
    expect(last.runId).not.toBe(unitRun.runId);
    const history = (await host.read('/var/lib/reeve/history.ndjson'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const ownEnds = history.filter(({ run }) => run === unitRun.runId).map(({ at }) => at);
    expect(ownEnds.every((at) => at <= last.startedAt)).toBe(true);
    expect(ownEnds.length).toBeGreaterThan(0);
  });

  it('makes its own tick wait for a reconcile by hand (R60)', async () => {
    const byHand = host.start(['reeve', 'lock', 'reconcile', '--', 'sh', '-c', 'echo held; read line']);
    await byHand.waitFor('held');
    await deployQuietly();
    await host.waitFor(
      'the tick to wait',
      async () => (await host.show('reeve-reconcile.service', 'ActiveState')).ActiveState === 'activating',
    );
    byHand.tell('go');
    expect((await byHand.ended).status).toBe(0);
    await expectHandled();
  });

  it('outlives a broken configuration under wakes, and does everything once it is repaired (R60, O45, O52)', async () => {
    await node.configure({ cluster: { intervals: quickIntervals } });
    const good = await host.read('/etc/reeve/reeve.yaml');
    await host.write('/etc/reeve/reeve.yaml', 'cluster: [this is\n');
    for (let wakes = 0; wakes < 12; wakes += 1) {
      await host.output(['touch', wake]);
      await host.waitFor('the wake to be taken', async () => !(await host.exists(wake)));
    }
    await host.waitFor('the tick to fail', async () => {
      const shown = await host.show('reeve-reconcile.service', 'ActiveState', 'ExecMainStatus');
      return shown.ActiveState === 'failed' && shown.ExecMainStatus === '78';
    });
    await expectUnitsAlive();
    // Somebody with another configuration deploys meanwhile.
    await host.write('/root/good.yaml', good);
    const file = JSON.stringify({
      services: [{ project: 'blog', nodes: ['web-1'], ...aWebDeploy({ image: 'reeve-demo/web:v1' }) }],
    });
    await host.write('/root/services.yaml', file);
    await node.must('--config', '/root/good.yaml', 'deploy', '/root/services.yaml', '--yes');
    await host.write('/etc/reeve/reeve.yaml', good);
    await node.settled('reeve-demo/web:v1');
    await expectUnitsAlive();
  });

  async function holdLock(): Promise<Program> {
    const holder = host.start(['flock', lock, 'sh', '-c', 'echo held; read line']);
    await holder.waitFor('held');
    return holder;
  }

  async function release(holder: Program): Promise<void> {
    holder.tell('go');
    expect((await holder.ended).status).toBe(0);
  }

  /** It waits rather than fails, and has not begun. */
  async function expectWaiting(): Promise<void> {
    expect((await host.show('reeve-reconcile.path', 'ActiveState')).ActiveState).toBe('active');
    expect((await node.runOf('reconcile')).endedAt).not.toBe(null);
  }
});
