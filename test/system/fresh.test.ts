// From a machine that has never seen reeve to a service that answers, and back.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { describeInstalled, type Installed, provision } from '../support/installed.ts';
import { readSlowness } from '../support/machine-speed.ts';
import { aWebDeploy } from '../support/services.ts';
import { appTimers, describeHost, nextRuns, tellFigure } from '../support/system.ts';

describeHost('a fresh machine', () => {
  let host: Host;
  let node: Installed;
  let directory: string;
  beforeAll(async () => {
    host = startHost('web-1');
    directory = await provision(host);
    node = describeInstalled(host);
  });
  afterAll(() => host?.stop());

  it('serves what was deployed after an install, an init and a deploy, with no other command (L3, L6, L8, D12)', async () => {
    const startedAt = performance.now();
    await host.output([`${directory}/scripts/install`]);
    await node.init();
    await node.deploy([aWebDeploy()]);
    const body = await host.waitFor('the service to answer', () => node.ask('/'), { timeoutMs: 30_000 });
    tellFigure(
      `install, init, deploy and the first answer took ${Math.round(performance.now() - startedAt)} ms`,
    );
    expect(body).toMatch(/^web v1 on /);
    await node.settled('reeve-demo/web:v1');
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  });

  it('has units that systemd has nothing to say about, each with a next run (L17, O39)', async () => {
    const units = await host.sh("ls /usr/lib/systemd/system/reeve* | sed 's/reeve-failed@/&x/'");
    const verified = await host.run([
      'sh',
      '-c',
      'systemd-analyze verify "$@" 2>&1',
      'sh',
      ...units.trim().split('\n'),
    ]);
    expect(verified).toMatchObject({ status: 0, stdout: '' });
    const runs = await nextRuns(host);
    expect(Object.keys(runs)).toEqual(appTimers);
    // The heartbeat fits twice into the minute after which readers call a node stale.
    expect(runs['reeve-heartbeat.timer']).toBeLessThanOrEqual(31);
    expect(runs['reeve-reconcile.timer']).toBeLessThanOrEqual(62);
    expect(runs['reeve-prune.timer']).toBeLessThanOrEqual(25 * 3600);
  });

  it('calls itself healthy, with nothing for an operator to do', async () => {
    const { status, stdout, stderr } = await node.reeve('doctor');
    const others = stdout
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('ok '));
    expect({ status, stderr, others }).toEqual({
      status: 0,
      stderr: '',
      others: [expect.stringMatching(/^doctor: \d+ checks, 0 warnings, 0 failures$/)],
    });
  });

  it('tells by status when its timers run next', async () => {
    // While a tick runs, its timer does not know yet.
    const nextAt = await host.waitFor('the next run to be known', async () => {
      const { stdout } = await node.reeve('status', '--json');
      const { concerns } = JSON.parse(stdout) as { concerns: { concern: string; nextAt?: string }[] };
      return concerns.find(({ concern }) => concern === 'reconcile')?.nextAt;
    });
    expect(Date.parse(nextAt) - Date.now()).toBeLessThan(62_000);
    const row = /^reconcile {2}.* in [\d.]+m?s /m;
    await host.waitFor('it to be told', async () => row.test((await node.reeve('status')).stdout));
  });

  it('starts a tick within 150 ms of a deploy, in the median of ten (L5)', async () => {
    const delays: { unitMs: number; codeMs: number }[] = [];
    for (let round = 0; round < 10; round += 1) {
      const before = await node.runOf('reconcile');
      await node.deploy([aWebDeploy({ rollout: { drainTimeout: `${round}s` } })]);
      const writtenAt = (await node.store.writtenAt('nodes/web-1/desired.json')) * 1000;
      const run = await host.waitFor('the tick', async () => {
        const current = await node.runOf('reconcile');
        const isLater = current.runId !== before.runId && Date.parse(current.startedAt) >= writtenAt / 1000;
        return isLater && current.endedAt !== null && current;
      });
      const [started] = (
        await host.journal('--unit', 'reeve-reconcile.service', '--since', `@${Math.floor(writtenAt / 1e6)}`)
      ).filter(({ message, at }) => message.startsWith('Starting') && at > writtenAt);
      delays.push({
        unitMs: ((started?.at ?? Number.NaN) - writtenAt) / 1000,
        codeMs: Date.parse(run.startedAt) - writtenAt / 1000,
      });
    }
    const unit = median(delays.map(({ unitMs }) => unitMs));
    const code = median(delays.map(({ codeMs }) => codeMs));
    tellFigure(
      `from desired.json to systemd starting the tick: median ${unit.toFixed(0)} ms; to its first record: ${code.toFixed(0)} ms`,
    );
    tellFigure(delays.map(({ unitMs, codeMs }) => `${unitMs.toFixed(0)}/${codeMs.toFixed(0)}`).join(' '));
    expect(unit).toBeLessThan(150 * (await readSlowness()));
  });
});

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] ?? Number.NaN) + (sorted[sorted.length >> 1] ?? Number.NaN)) / 2;
}
