// `reeve heartbeat` beside a reconcile that rests, works, hangs or is gone: real processes, locks and a store in a directory.
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import type { NodeStatus } from '../../../src/lib/cluster/wire.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, startRun } from '../../../src/lib/state/run-record.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';
import { type Program, startNodeProgram } from '../../support/programs.ts';

const before = '2026-06-04T03:00:00.000Z';
const statusFile = 'store/nodes/web-1/status.json';

/** A node that published its status long ago, and whose last reconcile ended `agoMs` ago. */
async function makeNode(agoMs = 0): Promise<Machine> {
  const machine = makeMachine();
  const body = aNodeStatus({ nodeId: 'web-1' });
  machine.write('state/published.json', {
    version: 1,
    body,
    status: { fingerprint: statusFingerprint(body), lastWriteAt: before },
    reeve: null,
  });
  const endedAt = new Date(Date.now() - agoMs);
  const about = { paths: machine, now: endedAt, log: silentLog };
  const run = await startRun(about, { concern: 'reconcile', runId: 'run-1', pid: 1 });
  await endRun(machine, run, { now: endedAt, outcome: 'done', exitCode: 0 });
  return machine;
}

/** A reconcile that holds its lock and has told of a step with this deadline. */
async function beginRun(machine: Machine, deadlineInMs: number): Promise<Program> {
  const holder = startNodeProgram('hold-lock.ts', [machine.locksDir, 'reconcile']);
  await holder.waitFor('holding');
  const now = new Date();
  const step = {
    name: 'pull',
    startedAt: new Date(now.getTime() + deadlineInMs - 20_000).toISOString(),
    deadlineAt: new Date(now.getTime() + deadlineInMs).toISOString(),
  };
  const about = { paths: machine, now, log: silentLog };
  await startRun(about, { concern: 'reconcile', runId: 'run-2', pid: holder.pid, step });
  return holder;
}

const published = (machine: Machine) =>
  machine.json('state/published.json') as { body: NodeStatus; status: { lastWriteAt: string } };

describe('a heartbeat of a living node', () => {
  it('puts the last status again with lastSeen, updatedAt and the host sample renewed (L112, L113, L115)', async () => {
    const machine = await makeNode();
    const end = await machine.reeve('heartbeat', '--json');
    expect(end.status).toBe(0);
    const status = machine.json(statusFile) as NodeStatus;
    const { host, lastSeen } = status;
    const [service] = aNodeStatus().services;
    expect(status).toEqual({
      ...aNodeStatus({ nodeId: 'web-1' }),
      lastSeen: expect.any(String),
      services: [{ ...service, updatedAt: lastSeen }],
      host,
    });
    expect(Object.keys(host ?? {})).toEqual(['cpuPercent', 'memoryUsedMb', 'memoryTotalMb', 'sampledAt']);
    expect(Date.now() - Date.parse(lastSeen)).toBeLessThan(30_000);
    expect(published(machine)).toMatchObject({ body: status, status: { lastWriteAt: lastSeen } });
    expect(JSON.parse(end.stdout)).toEqual({
      ...{ version: 1, command: 'heartbeat', outcome: 'done', nodes: ['web-1'], host },
    });
    expect(machine.json('state/runs/heartbeat.json')).toMatchObject({ outcome: 'done', exitCode: 0 });
  });

  it('leaves the fingerprint alone, so that reconcile has nothing to write after it (L114)', async () => {
    const machine = await makeNode();
    await machine.reeve('heartbeat');
    const { body, status } = machine.json('state/published.json') as {
      body: NodeStatus;
      status: { fingerprint: string };
    };
    expect(statusFingerprint(body)).toBe(status.fingerprint);
  });

  it('goes out while a long run works, and waits for nothing of it (R33)', async () => {
    const machine = await makeNode(999_000);
    const holder = await beginRun(machine, 15_000);
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    holder.tell('stop');
    await holder.ended;
  });
});

describe('a node that does not live', () => {
  const expectSilence = async (machine: Machine, why: RegExp): Promise<void> => {
    const untouched = machine.read('state/published.json');
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stdout, machine.read(statusFile)]).toEqual([1, '', undefined]);
    expect(end.stderr).toMatch(why);
    expect(machine.read('state/published.json')).toBe(untouched);
    expect(machine.json('state/runs/heartbeat.json')).toMatchObject({ outcome: 'failed', exitCode: 1 });
  };

  it('is not reported once reconcile has not ended for three ticks', async () => {
    const why =
      /^reeve: cannot call node "web-1" alive: reconcile last ended 3m \d+s ago, and 3m are allowed\n$/;
    await expectSilence(await makeNode(190_000), why);
  });

  it('is not reported while a run hangs, though the last one ended just now (R33, O40)', async () => {
    const machine = await makeNode();
    const holder = await beginRun(machine, -1_000);
    await expectSilence(machine, /run run-2 of reconcile, .* old, is stuck in "pull"/);
    holder.child.kill('SIGKILL');
    await holder.ended;
    expect((await machine.reeve('heartbeat')).status, 'a killed run does not hang').toBe(0);
  });

  it('is not reported where nothing is known of reconcile', async () => {
    const machine = await makeNode();
    rmSync(join(machine.stateDir, 'runs'), { recursive: true });
    await expectSilence(machine, /reconcile has never run\n$/);
  });
});

describe('a heartbeat that cannot be sent', () => {
  it('has nothing to do before anything was published', async () => {
    const end = await makeMachine().reeve('heartbeat');
    expect([end.status, end.stdout]).toEqual([0, 'nothing has been published yet\n']);
  });

  it.each([{}, { services: {} }, { services: [null] }])(
    'takes a publication whose body is %j for lost, and puts nothing',
    async (body) => {
      const machine = await makeNode();
      machine.write('state/published.json', { ...published(machine), body });
      const end = await machine.reeve('heartbeat');
      expect([end.status, end.stdout]).toEqual([0, 'nothing has been published yet\n']);
      expect(machine.read(statusFile)).toBeUndefined();
    },
  );

  it('leaves what it remembers as it was, so that reconcile writes for it (L115)', async () => {
    const machine = await makeNode();
    rmSync(machine.storeDir, { recursive: true });
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(69);
    expect(published(machine).status.lastWriteAt).toBe(before);
  });

  it('is another’s business while another sends one', async () => {
    const machine = await makeNode();
    const holder = startNodeProgram('hold-lock.ts', [machine.locksDir, 'heartbeat']);
    await holder.waitFor('holding');
    expect((await machine.reeve('heartbeat')).status).toBe(75);
    holder.tell('stop');
    await holder.ended;
  });

  it('needs a node to speak of', async () => {
    const end = await makeMachine({ cluster: {} }).reeve('heartbeat');
    expect(end.status).toBe(78);
    expect(end.stderr).toContain('this machine is no node');
  });
});

describe('the status file', () => {
  it('is replaced whole', async () => {
    const machine = await makeNode();
    await machine.reeve('heartbeat');
    const path = join(machine.root, statusFile);
    const first = statSync(path).ino;
    await machine.reeve('heartbeat');
    expect(statSync(path).ino).not.toBe(first);
    expect(readFileSync(path, 'utf8').endsWith('}\n')).toBe(true);
  });
});
