// `reeve failed UNIT` as OnFailure= runs it: real processes, a real hook, a fake systemctl and journalctl.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, startRun } from '../../../src/lib/state/run-record.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';

const unit = 'reeve-reconcile.service';
const monitored = {
  MONITOR_SERVICE_RESULT: 'exit-code',
  MONITOR_EXIT_CODE: 'exited',
  MONITOR_EXIT_STATUS: '1',
  MONITOR_INVOCATION_ID: 'abc',
};

/** Its hook appends its arguments and its stdin to files. */
function machineWithHook(failure: object = {}): Machine {
  const machine = makeMachine();
  const hook = machine.write('hook', hookScript(machine.root));
  machine.write('etc/reeve.yaml', {
    cluster: { nodeId: 'web-1', store: `file://${machine.storeDir}` },
    hooks: {
      failure: { command: ['sh', hook, '{unit}', '{result}/{status}', '{message} {other}'], ...failure },
    },
  });
  machine.write(`journal/${unit}`, `old\n${'line\n'.repeat(19)}cannot reach the engine\n`);
  return machine;
}

const hookScript = (root: string): string =>
  `printf '%s\\n' "$@" >>${root}/args; cat >>${root}/stdin; echo >>${root}/calls`;

const calls = (machine: Machine): number => (machine.read('calls') ?? '').length;

describe('a failed unit', () => {
  it('is recorded with how it ended and its last lines, and the hook is told', async () => {
    const machine = machineWithHook();
    const end = await machine.start(['failed', unit], monitored).ended;
    const message = `${unit} on ${hostname()} failed (exit-code, status 1): cannot reach the engine`;
    expect([end.status, end.stdout]).toEqual([0, `${message}\n`]);
    const record = machine.json(`state/failures/${unit}.json`);
    expect(record).toMatchObject({
      unit,
      count: 1,
      result: 'exit-code',
      status: '1',
      invocationId: 'abc',
      notified: true,
      hook: { error: null },
    });
    expect((record as { lastLines: string[] }).lastLines).toHaveLength(20);
    expect(machine.read('args')).toBe(`${unit}\nexit-code/1\n${message} {other}\n`);
    expect(JSON.parse(machine.read('stdin') ?? '')).toMatchObject({
      version: 1,
      unit,
      node: 'web-1',
      message,
      count: 1,
    });
  });

  it('is told of once until its concern has had a good run', async () => {
    const machine = machineWithHook();
    for (let round = 0; round < 2; round++) await machine.start(['failed', unit], monitored).ended;
    expect(calls(machine)).toBe(1);
    const about = { paths: machine, now: new Date(), log: silentLog };
    const run = await startRun(about, { concern: 'reconcile', runId: 'r', pid: 1 });
    await endRun(machine, run, { now: new Date(), outcome: 'done', exitCode: 0 });
    await machine.start(['failed', unit], monitored).ended;
    expect(machine.json(`state/failures/${unit}.json`)).toMatchObject({ count: 1, notified: false });
    expect(calls(machine), 'an hour has to pass').toBe(1);
  });

  it('of an older systemd is asked for how it ended', async () => {
    const machine = machineWithHook();
    machine.write(`systemd/units/${unit}`, 'Result=timeout\nExecMainStatus=9\nInvocationID=def\n');
    const end = await machine.reeve('failed', unit);
    expect(end.status).toBe(0);
    expect(machine.json(`state/failures/${unit}.json`)).toMatchObject({
      result: 'timeout',
      status: '9',
      invocationId: 'def',
    });
  });

  it('is recorded where nothing can be asked and no hook is set', async () => {
    const machine = makeMachine();
    const end = await machine.reeve('failed', unit);
    expect([end.status, end.stdout]).toEqual([0, `${unit} on ${hostname()} failed (unknown)\n`]);
    expect(machine.json(`state/failures/${unit}.json`)).toMatchObject({ result: 'unknown', hook: null });
  });

  it('is told of although the configuration is broken elsewhere: that may be why it failed', async () => {
    const machine = machineWithHook();
    const config = machine.json('etc/reeve.yaml') as object;
    machine.write('etc/reeve.yaml', { ...config, cluster: { nodeID: 'web-1' } });
    const end = await machine.start(['failed', unit], monitored).ended;
    expect([end.status, calls(machine)]).toEqual([0, 1]);
  });

  it.each([
    ['fails', { command: ['sh', '-c', 'echo nobody there >&2; exit 3'] }, /exit status 3: nobody there$/],
    ['hangs', { command: ['sleep', '60'], timeout: '300ms' }, /no end within 300ms$/],
    ['is not there', { command: ['/nowhere/page'] }, /no such program or directory$/],
  ])('fails nothing where the hook %s, and is told of later', async (_, failure, error) => {
    const machine = machineWithHook(failure);
    const end = await machine.start(['failed', unit], monitored).ended;
    expect(end.status).toBe(0);
    expect(machine.json(`state/failures/${unit}.json`)).toMatchObject({
      notified: false,
      hook: { error: expect.stringMatching(error) },
    });
  });

  it('fails where its record cannot be written', async () => {
    const machine = machineWithHook();
    machine.write('state/failures', 'in the way');
    const end = await machine.start(['failed', unit], monitored).ended;
    expect([end.status, calls(machine)]).toEqual([78, 0]);
    expect(end.stderr).toContain(`state/failures`);
  });

  it('has a name that is one', async () => {
    const end = await makeMachine().reeve('failed', '../ports.json');
    expect([end.status, end.stderr]).toEqual([
      64,
      'reeve: "../ports.json" is no unit: give its full name, as reeve-reconcile.service\n',
    ]);
  });
});

describe('a hook that is an address', () => {
  it('is sent the message below /fail', async () => {
    const { url, requests } = await listen(() => 200);
    const machine = machineWithHook({ command: undefined, url: `${url}/check-1/?key=x` });
    await machine.start(['failed', unit], monitored).ended;
    expect(requests.map(({ line }) => line)).toEqual(['POST /check-1/fail?key=x']);
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ unit, result: 'exit-code' });
    expect(machine.json(`state/failures/${unit}.json`)).toMatchObject({ notified: true });
  });

  it('that refuses is told of later, and never shown with what may be its secret', async () => {
    const { url } = await listen(() => 503);
    const machine = machineWithHook({ command: undefined, url: `${url}/secret-path` });
    const end = await machine.start(['failed', unit], monitored).ended;
    const host = new URL(url).host;
    expect(end.stderr).toBe(`error: the failure hook failed: cannot send to ${host}: it answered 503\n`);
  });
});

type Seen = { line: string; body: string };

async function listen(status: () => number): Promise<{ url: string; requests: Seen[] }> {
  const requests: Seen[] = [];
  const server: Server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push({ line: `${request.method} ${request.url}`, body });
      response.statusCode = status();
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
