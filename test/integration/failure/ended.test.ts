// `reeve ended CONCERN` as ExecStopPost= runs it.
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, startRun } from '../../../src/lib/state/run-record.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';
import { startNodeProgram } from '../../support/programs.ts';

const killed = (result: string, status = 'KILL') => ({
  SERVICE_RESULT: result,
  EXIT_CODE: 'killed',
  EXIT_STATUS: status,
});

async function begin({ stateDir }: Machine, concern = 'reconcile', pid = 1) {
  const about = { paths: { stateDir }, now: new Date(), log: silentLog };
  const step = { name: 'pull', startedAt: about.now.toISOString(), deadlineAt: about.now.toISOString() };
  return await startRun(about, { concern, runId: 'run-1', pid, step });
}

describe('a run that was killed', () => {
  it.each([
    ['timeout', killed('timeout', 'TERM'), 143, 'killed by its unit (SIGTERM): no end in time'],
    ['oom-kill', killed('oom-kill'), 137, 'killed (SIGKILL): out of memory'],
    ['signal', killed('signal', 'SEGV'), 139, 'ended by SIGSEGV without a word (signal)'],
    [
      'exit-code',
      { SERVICE_RESULT: 'exit-code', EXIT_CODE: 'exited', EXIT_STATUS: '134' },
      134,
      'ended by exit status 134 without a word (exit-code)',
    ],
  ])('is recorded as such: %s (O40)', async (_, env, exitCode, error) => {
    const machine = makeMachine();
    await begin(machine);
    const end = await machine.start(['ended', 'reconcile'], env).ended;
    expect(end.status).toBe(0);
    expect(machine.json('state/runs/reconcile.json')).toMatchObject({
      runId: 'run-1',
      outcome: 'killed',
      exitCode,
      error: `${error}, during "pull"`,
      endedAt: expect.any(String),
      lastEndedAt: null,
    });
    expect(machine.read('state/history.ndjson')).toContain(`"reason":"${error}"`);
  });

  it('is nobody else’s: a run that another still does, as its lock tells, stays open', async () => {
    const machine = makeMachine();
    const holder = startNodeProgram('hold-lock.ts', [machine.locksDir, 'reconcile']);
    await holder.waitFor('holding');
    await begin(machine);
    const end = await machine.start(['ended', 'reconcile'], killed('signal')).ended;
    expect(end.status).toBe(0);
    expect(machine.json('state/runs/reconcile.json')).toMatchObject({ endedAt: null });
    holder.tell('stop');
    await holder.ended;
  });

  it('of a concern without a lock stays open while its process lives', async () => {
    const machine = makeMachine();
    await begin(machine, 'stats', process.pid);
    await machine.start(['ended', 'stats'], killed('signal')).ended;
    expect(machine.json('state/runs/stats.json')).toMatchObject({ endedAt: null });
  });
});

describe('a run that ended by itself', () => {
  it('stays as it recorded itself', async () => {
    const machine = makeMachine();
    await endRun(machine, await begin(machine), { now: new Date(), outcome: 'done', exitCode: 0 });
    const before = machine.read('state/runs/reconcile.json');
    const end = await machine.start(['ended', 'reconcile'], {
      SERVICE_RESULT: 'success',
      EXIT_CODE: 'exited',
      EXIT_STATUS: '0',
    }).ended;
    expect([end.status, machine.read('state/runs/reconcile.json')]).toEqual([0, before]);
  });

  it('may have none to show for it', async () => {
    const end = await makeMachine().start(['ended', 'reconcile'], killed('signal')).ended;
    expect([end.status, end.stdout]).toEqual([0, '']);
  });
});

describe('the command', () => {
  it('is for systemd, and not in the help', async () => {
    const machine = makeMachine();
    const end = await machine.start(['ended', 'reconcile'], { SERVICE_RESULT: '' }).ended;
    expect([end.status, end.stderr]).toEqual([
      64,
      'reeve: SERVICE_RESULT is not set: this is for ExecStopPost=, where systemd sets it\n',
    ]);
    const help = await machine.reeve('--help');
    expect(help.stdout).not.toMatch(/^ {2}(ended|failed) /m);
    expect(help.stdout).toMatch(/^ {2}heartbeat /m);
  });
});
