// `reeve doctor` on a machine that is well, and on one where everything is wrong: a real process, real files and locks, an
// engine that answers on a real socket, and a fake systemctl.
import { chmodSync, mkdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, startRun } from '../../../src/lib/state/run-record.ts';
import { aDesired, aService } from '../../support/builders.ts';
import { answer, startFakeEngine, startRawEngine } from '../../support/fake-engine.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';
import { startNodeProgram, startProcess } from '../../support/programs.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };
type Report = { outcome: string; findings: Finding[]; checks: number; warnings: number; failures: number };

async function examine(machine: Machine): Promise<{ status: number | null; report: Report }> {
  const end = await machine.reeve('doctor', '--json');
  return { status: end.status, report: JSON.parse(end.stdout) };
}

const of = (report: Report, check: string): Finding[] =>
  report.findings
    .filter((finding) => finding.check === check)
    .map(({ check: _, ...rest }) => rest as Finding);

const timer = (next: string): string =>
  `LoadState=loaded\nActiveState=active\nSubState=waiting\nResult=success\nNextElapseUSecMonotonic=${next}\n`;
const service = (rest = 'ActiveState=inactive\nSubState=dead\nResult=success'): string =>
  `LoadState=loaded\n${rest}\n`;

/** Units, an engine with one container of ours, a desired state, and runs that have just gone well. */
async function makeHealthy(containers: object[] = []): Promise<Machine> {
  const engine = await startFakeEngine('1.41', (line, response) => {
    if (line === 'GET /info') answer(response, 200, { ServerVersion: '20.10.24' });
    else if (line.startsWith('GET /v1.41/containers/json')) answer(response, 200, containers);
    else
      answer(
        response,
        200,
        containers.find((one) => line.includes((one as { Id: string }).Id)),
      );
  });
  onTestFinished(() => engine.stop());
  const machine = makeMachine({ cluster: { nodeId: 'web-1', docker: { socket: engine.socket } } });
  chmodSync(join(machine.root, 'etc/reeve.yaml'), 0o600);
  machine.write('store/nodes/web-1/desired.json', aDesired([aService()]));
  machine.write(
    'systemd/unit-files',
    'reeve.target enabled\nreeve-reconcile.timer static\nreeve-reconcile.service static\n',
  );
  machine.write('systemd/units/reeve.target', service('ActiveState=active\nSubState=active\nResult=success'));
  machine.write('systemd/units/reeve-reconcile.timer', timer('1min'));
  machine.write('systemd/units/reeve-reconcile.service', service());
  for (const concern of ['reconcile', 'heartbeat']) {
    const about = { paths: machine, now: new Date(), log: silentLog };
    const run = await startRun(about, { concern, runId: `${concern}-1`, pid: 1 });
    await endRun(machine, run, { now: new Date(), outcome: 'done', exitCode: 0 });
  }
  return machine;
}

describe('a machine that is well', () => {
  it('has nothing to complain of, line by line', async () => {
    const machine = await makeHealthy();
    const end = await machine.reeve('doctor');
    expect([end.status, end.stderr]).toEqual([0, '']);
    const lines = end.stdout.trimEnd().split('\n');
    expect(lines.slice(0, -1).map((line) => line.replace(/:.*/, ''))).toEqual([
      'ok   config',
      'ok   directories',
      'ok   secrets',
      'ok   disk',
      'ok   state',
      'ok   locks',
      'ok   engine',
      'ok   engine',
      'ok   store',
      'ok   units',
      'ok   units',
      'ok   agents',
      'ok   runs',
      'ok   failures',
      'ok   holds',
    ]);
    expect(lines.at(-1)).toBe('doctor: 15 checks, 0 warnings, 0 failures');
    expect(machine.read('store/nodes/web-1/desired.json'), 'no probe is left').toBeDefined();
  });

  it('without systemd is told so in one line, and judged by the rest', async () => {
    const machine = makeMachine({ cluster: {} });
    const { status, report } = await examine(machine);
    expect(of(report, 'units')).toEqual([
      { level: 'skipped', what: 'systemd does not run here: units and timers are not looked at' },
    ]);
    expect(of(report, 'engine')).toEqual([
      { level: 'skipped', what: 'this machine runs no containers of ours' },
    ]);
    expect([status, report.outcome, report.failures]).toEqual([0, 'done', 0]);
  });
});

describe('a sick machine', () => {
  it('without an engine, a store and a valid configuration tells all three at once', async () => {
    const machine = await makeHealthy();
    machine.write('etc/reeve.yaml', {
      cluster: { nodeId: 'web-1', store: 'file:///nowhere/at/all', docker: { socket: '/nowhere.sock' } },
      job: {},
    });
    const { status, report } = await examine(machine);
    expect(status).toBe(1);
    expect(of(report, 'config')[0]).toMatchObject({ level: 'failure', what: expect.stringContaining('job') });
    expect(of(report, 'engine')[0]).toMatchObject({
      level: 'failure',
      what: 'it is not there',
      where: '/nowhere.sock',
    });
    expect(of(report, 'store')[0]).toMatchObject({
      level: 'failure',
      what: 'it cannot be reached: it is not there',
      where: 'file:///nowhere/at/all',
    });
    expect(report.failures).toBe(3);
  });

  it('without any configuration says what to do', async () => {
    const machine = makeMachine();
    const end = await machine.start(['doctor', '--config', '/nowhere/reeve.yaml']).ended;
    expect(end.status).toBe(1);
    expect(end.stdout).toMatch(/^FAIL config: cannot read \/nowhere\/reeve\.yaml: .*reeve init/);
  });

  it('has units that will never run again (R60, O39)', async () => {
    const machine = await makeHealthy();
    machine.write('systemd/units/reeve-reconcile.timer', timer('infinity'));
    machine.write(
      'systemd/units/reeve-reconcile.service',
      service('ActiveState=failed\nSubState=failed\nResult=start-limit-hit'),
    );
    const { status, report } = await examine(machine);
    expect(status).toBe(1);
    expect(of(report, 'units').map(({ level, where }) => [level, where])).toEqual([
      ['failure', 'reeve-reconcile.service'],
      ['failure', 'reeve-reconcile.timer'],
    ]);
  });

  it('runs another agent for the same work', async () => {
    const machine = await makeHealthy();
    machine.write('systemd/units/launch-pad-agent.service', service('ActiveState=active'));
    const asUnit = await examine(machine);
    expect(of(asUnit.report, 'agents')[0]).toMatchObject({
      level: 'failure',
      where: 'launch-pad-agent.service',
    });
    machine.write('systemd/units/launch-pad-agent.service', service());
    const script = machine.write('launch-pad-agent.mjs', 'process.stdin.resume(); console.log("up");');
    const agent = startProcess(process.execPath, [script]);
    await agent.waitFor('up');
    const asProcess = await examine(machine);
    expect(of(asProcess.report, 'agents')[0]).toMatchObject({ level: 'failure', where: `pid ${agent.pid}` });
    agent.child.stdin.end();
    await agent.ended;
  });

  it('has old runs, a recorded failure, a hold, a held lock and a damaged file', async () => {
    const machine = await makeHealthy();
    const old = new Date(Date.now() - 600_000);
    const about = { paths: machine, now: old, log: silentLog };
    machine.write('state/runs/reconcile.json', '');
    await endRun(machine, await startRun(about, { concern: 'reconcile', runId: 'r', pid: 1 }), {
      now: old,
      outcome: 'failed',
      exitCode: 69,
      error: 'no engine',
    });
    await machine.start(['failed', 'reeve-reconcile.service'], { MONITOR_SERVICE_RESULT: 'timeout' }).ended;
    await machine.reeve('hold', 'blog/web', '--for', '1h', '--reason', 'debugging');
    const holder = startNodeProgram('hold-lock.ts', [machine.locksDir, 'reconcile']);
    await holder.waitFor('holding');
    machine.write('state/ports.json.corrupt-2026-06-04T03-00-00-000Z', '');
    const { status, report } = await examine(machine);
    holder.tell('stop');
    await holder.ended;
    expect(status).toBe(1);
    expect(of(report, 'runs').map(({ level, what }) => [level, what])).toEqual([
      ['failure', expect.stringMatching(/^reconcile has had no good run yet/)],
      ['failure', 'the last run of reconcile ended with 69: no engine'],
    ]);
    expect(of(report, 'failures')[0]).toMatchObject({ level: 'failure', where: 'reeve-reconcile.service' });
    expect(of(report, 'holds')[0]).toMatchObject({ level: 'warning', where: 'blog/web' });
    expect(of(report, 'locks')[0]?.what).toMatch(new RegExp(`^held by pid ${holder.pid}, `));
    const corrupt = of(report, 'state').map(({ where = '' }) => where.replace(machine.stateDir, ''));
    expect(corrupt).toContain('/ports.json.corrupt-2026-06-04T03-00-00-000Z');
  });

  it('lets others at its secrets and its state', async () => {
    const machine = await makeHealthy();
    machine.write('etc/secrets/blog/web/TOKEN', 'x');
    chmodSync(join(machine.root, 'etc/secrets'), 0o700);
    chmodSync(join(machine.root, 'etc/secrets/blog/web/TOKEN'), 0o644);
    chmodSync(machine.stateDir, 0o777);
    chmodSync(join(machine.root, 'etc/reeve.yaml'), 0o666);
    const { report } = await examine(machine);
    expect(of(report, 'secrets')[0]).toMatchObject({
      level: 'failure',
      where: join(machine.root, 'etc/secrets/blog/web/TOKEN'),
    });
    expect(of(report, 'directories')[0]).toMatchObject({ level: 'failure', where: machine.stateDir });
    expect(of(report, 'config')[0]).toMatchObject({ level: 'failure', what: 'others may change it' });
  });

  it('has containers of another node and a log that grows without end (R62)', async () => {
    const labels = { 'launchpad.managed': 'true', 'reeve.node': 'web-9' };
    const container = (id: string, extra: object) => ({
      Id: id,
      Name: `/${id}`,
      Names: [`/${id}`],
      ...extra,
    });
    const machine = await makeHealthy([
      container('stranger', { Labels: labels, HostConfig: { LogConfig: { Type: 'journald', Config: {} } } }),
      container('theirs', {
        Labels: {},
        HostConfig: { LogConfig: { Type: 'json-file', Config: {} } },
        LogPath: growLog(),
      }),
      container('bounded', {
        Labels: {},
        HostConfig: { LogConfig: { Type: 'json-file', Config: { 'max-size': '10m' } } },
        LogPath: growLog(),
      }),
    ]);
    const { status, report } = await examine(machine);
    expect(of(report, 'engine').map(({ level, what, where }) => [level, what, where])).toEqual([
      ['ok', 'version 20.10.24, API 1.41, 3 containers', expect.any(String)],
      ['warning', '1 of another node, which reeve leaves alone', 'stranger'],
      ['warning', 'its log has 200 MiB and no bound', 'theirs'],
    ]);
    expect([status, report.warnings], 'warnings alone are no failure').toEqual([0, 2]);
  });

  it('whose engine hangs is told so within the time that every check has', async () => {
    const engine = await startRawEngine(() => {});
    onTestFinished(() => engine.stop());
    const machine = await makeHealthy();
    machine.write('etc/reeve.yaml', {
      cluster: { nodeId: 'web-1', store: `file://${machine.storeDir}`, docker: { socket: engine.socket } },
    });
    const began = performance.now();
    const { status, report } = await examine(machine);
    expect([status, performance.now() - began < 15_000]).toEqual([1, true]);
    expect(of(report, 'engine')[0]).toMatchObject({ level: 'failure', where: engine.socket });
    expect(of(report, 'store')[0]?.level).toBe('ok');
  });

  it('has a desired state that nobody can read', async () => {
    const machine = await makeHealthy();
    machine.write('store/nodes/web-1/desired.json', '{"version": 9}');
    const { report } = await examine(machine);
    expect(of(report, 'store').map(({ level }) => level)).toEqual(['ok', 'failure']);
  });

  function growLog(): string {
    const machine = makeMachine();
    mkdirSync(join(machine.root, 'logs'));
    const path = join(machine.root, 'logs/json.log');
    writeFileSync(path, '');
    truncateSync(path, 200 * 1024 ** 2);
    utimesSync(path, 0, 0);
    return path;
  }
});
