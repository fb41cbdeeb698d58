// `reeve heartbeat` of a machine that takes commands: a real process, and a strict control plane.
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Beats } from '../../../src/lib/heartbeat/plan-beat.ts';
import { type CommandsMachine, commandsToken, makeCommandsMachine } from '../../support/agenda/machine.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { createPki } from '../../support/ploy/pki.ts';
import { makeTempDir } from '../../support/temp.ts';

const beats = (machine: CommandsMachine): Beats => machine.json('state/backoff/commands.json') as Beats;
const waitMs = ({ lastTriedAt, nextAt }: Beats): number => Date.parse(nextAt) - Date.parse(lastTriedAt);
const warningOf = ({ stderr }: { stderr: string }): string => stderr.replace(/^warning: /, '').trim();

/** As if the interval were over. */
function letTimePass(machine: CommandsMachine): void {
  const { lastTriedAt, nextAt, ...others } = beats(machine);
  const past = (text: string): string => new Date(Date.parse(text) - 60_000).toISOString();
  const times = { lastTriedAt: past(lastTriedAt), nextAt: past(nextAt) };
  machine.write('state/backoff/commands.json', { version: 1, ...others, ...times });
}

describe('a heartbeat of commands', () => {
  it('A7, A19, A20, A21, A28, A29, A34: tells the control plane who we are, at once', async () => {
    const machine = await makeCommandsMachine();
    expect(machine.central.isOnline(7, 15_000)).toBe(false);
    const end = await machine.reeve('heartbeat', '--json');
    expect([end.status, end.stderr]).toEqual([0, '']);
    const [request, ...others] = machine.central.requests;
    expect([others, machine.central.violations]).toEqual([[], []]);
    expect(request).toMatchObject({
      ...{ method: 'POST', url: '/api/v1/machines/7/heartbeat', status: 200 },
      headers: { 'x-agenda-node-token': commandsToken, 'content-type': 'application/json' },
    });
    const { version } = JSON.parse(request?.body ?? '') as { version: string };
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    expect((await machine.reeve('--version')).stdout).toContain(version);
    expect(machine.central.isOnline(7, 15_000)).toBe(true);
    expect(JSON.parse(end.stdout)).toEqual({
      ...{ version: 1, command: 'heartbeat', outcome: 'done', commands: { machineId: 7, version } },
    });
    const { lastTriedAt, lastOkAt } = beats(machine);
    expect(lastOkAt).toBe(lastTriedAt);
  });

  it('A22: is left out until the interval is over', async () => {
    const machine = await makeCommandsMachine({ commands: { heartbeat_interval: '40s' } });
    await machine.reeve('heartbeat');
    expect(waitMs(beats(machine))).toBe(40_000);
    const early = await machine.reeve('heartbeat', '--json');
    expect([early.status, JSON.parse(early.stdout).outcome]).toEqual([0, 'nothing-to-do']);
    letTimePass(machine);
    await machine.reeve('heartbeat');
    expect(machine.central.requests.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('A21: goes below a path of the control plane', async () => {
    const machine = await makeCommandsMachine({ central: { base: '/agenda' } });
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    expect(machine.central.requests.map(({ url }) => url)).toEqual(['/agenda/api/v1/machines/7/heartbeat']);
  });

  it('A19: names a machine by as large an id as there can be', async () => {
    const machineId = 9_007_199_254_740_991;
    const machine = await makeCommandsMachine({
      commands: { machine_id: machineId },
      central: { machines: { [machineId]: commandsToken } },
    });
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    expect(machine.central.seen(machineId)?.version).toMatch(/^\d/);
  });
});

describe('a heartbeat of commands that fails', () => {
  const refusals = [
    [400, '{"code":400,"message":"invalid machine id"}', 'answered 400: invalid machine id'],
    [401, '{"error":"invalid node token"}', 'answered 401: invalid node token'],
    [404, '{"message":"machine not found"}', 'answered 404: machine not found'],
    [500, 'a <b>fault</b>', 'answered 500: a <b>fault</b>'],
    [503, '', 'answered 503'],
    [302, '', 'answered 302'],
  ] as const;

  it.each(refusals)(
    'A31, A32, A33: by %i is logged, is not fatal, and waits for the next tick',
    async (status, text, words) => {
      const machine = await makeCommandsMachine();
      const headers = { location: '/elsewhere' };
      machine.central.faults.push({ kind: 'answer', status, text, headers });
      const end = await machine.reeve('heartbeat', '--json');
      const problem = `cannot send the heartbeat of commands: the control plane ${words}`;
      expect([end.status, warningOf(end)]).toEqual([0, problem]);
      expect(JSON.parse(end.stdout)).toMatchObject({ outcome: 'deferred', commands: { error: problem } });
      expect([waitMs(beats(machine)), beats(machine).lastError]).toEqual([15_000, problem]);
      expect(machine.json('state/runs/heartbeat.json')).toMatchObject({ outcome: 'deferred', exitCode: 0 });
      expect(machine.central.requests, 'at once, it is not tried again').toHaveLength(1);
      await machine.reeve('heartbeat');
      expect(machine.central.requests).toHaveLength(1);
      letTimePass(machine);
      await machine.reeve('heartbeat');
      expect(machine.central.isOnline(7, 15_000)).toBe(true);
      expect(beats(machine)).not.toHaveProperty('lastError');
    },
  );

  it('A31, A33: by a reset connection, and by a control plane that is gone', async () => {
    const machine = await makeCommandsMachine();
    const cannot = `cannot send the heartbeat of commands: cannot reach ${machine.central.url}:`;
    machine.central.faults.push({ kind: 'reset' });
    const reset = await machine.reeve('heartbeat');
    expect([reset.status, warningOf(reset)]).toEqual([
      0,
      `${cannot} the connection was closed before the answer`,
    ]);
    letTimePass(machine);
    await machine.central.stop();
    const gone = await machine.reeve('heartbeat');
    expect([gone.status, warningOf(gone)]).toEqual([0, `${cannot} connection refused`]);
  });

  it('A34: by silence ends after ten seconds', async () => {
    const machine = await makeCommandsMachine();
    machine.central.faults.push({ kind: 'silence' });
    const startedMs = performance.now();
    const end = await machine.reeve('heartbeat');
    const tookMs = performance.now() - startedMs;
    expect([end.status, warningOf(end)]).toEqual([0, expect.stringMatching(/: no answer within 10000 ms$/)]);
    expect([tookMs >= 10_000, tookMs < 20_000]).toEqual([true, true]);
  });

  it('A30: is no failure where it is cancelled, and says nothing about the control plane', async () => {
    const machine = await makeCommandsMachine();
    machine.central.faults.push({ kind: 'silence' });
    const program = machine.start(['heartbeat']);
    await expect.poll(() => machine.central.requests.length, { timeout: 20_000 }).toBe(1);
    const startedMs = performance.now();
    program.child.kill('SIGTERM');
    await program.ended;
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(machine.read('state/backoff/commands.json')).toBeUndefined();
  });

  it('A20: never tells the token, even where the control plane repeats it', async () => {
    const machine = await makeCommandsMachine();
    machine.central.faults.push({ kind: 'answer', status: 401, text: `who is ${commandsToken}?` });
    const end = await machine.reeve('heartbeat', '--debug');
    expect(warningOf(end)).toMatch(/answered 401: who is \*\*\*\?$/);
    const told = `${end.stdout}${end.stderr}${machine.read('state/backoff/commands.json')}`;
    expect(told).not.toContain(commandsToken);
  });

  it('A32: is sent though its next turn cannot be noted', async () => {
    const machine = await makeCommandsMachine();
    mkdirSync(machine.stateDir, { recursive: true });
    symlinkSync('/proc/no-such-directory', join(machine.stateDir, 'backoff'));
    const end = await machine.reeve('heartbeat');
    const noted = 'it is not noted when the next heartbeat of commands is due';
    expect([end.status, end.stderr]).toEqual([0, expect.stringContaining(noted)]);
    expect(machine.central.isOnline(7, 15_000)).toBe(true);
  });
});

describe('a heartbeat of commands over TLS', () => {
  it('trusts what the system trusts, and no other authority', async () => {
    const pki = createPki(makeTempDir());
    const tls = { cert: readFileSync(pki.server.cert, 'utf8'), key: readFileSync(pki.server.key, 'utf8') };
    const machine = await makeCommandsMachine({ central: { tls } });
    const strange = await machine.reeve('heartbeat');
    expect([strange.status, warningOf(strange)]).toEqual([
      0,
      expect.stringMatching(/another authority than the system's authorities/),
    ]);
    letTimePass(machine);
    const trusted = await machine.start(['heartbeat'], { NODE_EXTRA_CA_CERTS: pki.ca.cert }).ended;
    expect([trusted.status, machine.central.isOnline(7, 15_000)]).toEqual([0, true]);
  });
});

describe('a machine of commands', () => {
  it('A35: has nobody to tell without a control plane, with a warning', async () => {
    const machine = await makeCommandsMachine({ commands: { central_base_url: '' } });
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stdout, warningOf(end)]).toEqual([
      0,
      'commands.central_base_url is empty: nobody is told\n',
      'commands.central_base_url is empty: no heartbeats are sent to that control plane',
    ]);
    expect(machine.central.requests).toEqual([]);
  });

  it.each(['status', 'proxy list', 'proxy set a 9', 'config show'])(
    'A35: is not warned of that with each `reeve %s`',
    async (line) => {
      const machine = await makeCommandsMachine({ commands: { central_base_url: '' } });
      const { status, stderr } = await machine.reeve(...line.split(' '));
      expect([status, stderr]).toEqual([0, '']);
      expect((await machine.reeve('config', 'check')).stdout).toContain('central_base_url is empty');
    },
  );

  it('A33: with a cluster that does not live tells its control plane, and fails for the other alone', async () => {
    const machine = await makeCommandsMachine({ sections: { cluster: { nodeId: 'web-1' } } });
    machine.write('state/published.json', {
      ...{ version: 1, body: aNodeStatus({ nodeId: 'web-1' }), reeve: null },
      status: { fingerprint: 'x', lastWriteAt: '2026-06-04T03:00:00.000Z' },
    });
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stderr]).toEqual([
      1,
      'reeve: cannot call node "web-1" alive: reconcile has never run\n',
    ]);
    expect(machine.central.isOnline(7, 15_000)).toBe(true);
  });
});
