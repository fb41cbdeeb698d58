// `reeve heartbeat` of an edge, and of one box that is two nodes in the store: whichever lives is reported, the other is named.
import { describe, expect, it } from 'vitest';
import { statusFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import type { NodeStatus } from '../../../src/lib/cluster/wire.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, startRun } from '../../../src/lib/state/run-record.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';
import { startNodeProgram } from '../../support/programs.ts';

const before = '2026-06-04T03:00:00.000Z';
const concerns = { box: 'reconcile', 'box-edge': 'edge', 'edge-1': 'edge' } as const;
type NodeId = keyof typeof concerns;

const bodyOf = (nodeId: string): NodeStatus => ({
  ...aNodeStatus({ nodeId, ...(nodeId === 'box' ? {} : { services: [] }) }),
  edgeRoutes: nodeId === 'box' ? [] : [{ domain: 'a.example.com', upstreams: 2 }],
});

/** The node published long ago, and the concern that keeps it last ended then. */
async function addNode(machine: Machine, nodeId: NodeId, agoMs: number): Promise<void> {
  const body = bodyOf(nodeId);
  machine.write(`state/published${nodeId === 'box' ? '' : '-edge'}.json`, {
    ...{ version: 1, body, reeve: null },
    status: { fingerprint: statusFingerprint(body), lastWriteAt: before },
  });
  const endedAt = new Date(Date.now() - agoMs);
  const run = await startRun(
    { paths: machine, now: endedAt, log: silentLog },
    { concern: concerns[nodeId], runId: 'run-1', pid: 1 },
  );
  await endRun(machine, run, { now: endedAt, outcome: 'done', exitCode: 0 });
}

const makeBox = (): Machine => makeMachine({ cluster: { nodeId: 'box', role: ['app', 'edge'] } });
const reported = (machine: Machine, nodeId: NodeId): NodeStatus | null =>
  machine.json(`store/nodes/${nodeId}/status.json`) as NodeStatus | null;
const long = 999_000;

describe('a heartbeat of an edge', () => {
  const makeEdge = (): Machine => makeMachine({ cluster: { nodeId: 'edge-1', role: 'edge' } });

  it('puts the edge’s last status again, and asks nothing of reconcile (L112, L113)', async () => {
    const machine = makeEdge();
    await addNode(machine, 'edge-1', 0);
    const end = await machine.reeve('heartbeat', '--json');
    expect([end.status, JSON.parse(end.stdout).nodes]).toEqual([0, ['edge-1']]);
    const status = reported(machine, 'edge-1');
    const { lastSeen = '', host } = status ?? {};
    expect(status).toEqual({ ...bodyOf('edge-1'), lastSeen, host });
    expect([Date.now() - Date.parse(lastSeen) < 30_000, typeof host?.memoryTotalMb]).toEqual([
      true,
      'number',
    ]);
    expect(machine.read('state/published.json')).toBeUndefined();
  });

  it('is silent once no tick of the edge has ended for three ticks', async () => {
    const machine = makeEdge();
    await addNode(machine, 'edge-1', long);
    const end = await machine.reeve('heartbeat');
    expect([end.status, reported(machine, 'edge-1')]).toEqual([1, null]);
    expect(end.stderr).toMatch(/^reeve: cannot call node "edge-1" alive: edge last ended 16m \d+s ago/);
  });

  it('goes out while a tick that has told of its deadline works (R33)', async () => {
    const machine = makeEdge();
    await addNode(machine, 'edge-1', long);
    const holder = startNodeProgram('hold-lock.ts', [machine.locksDir, 'edge']);
    await holder.waitFor('holding');
    const now = new Date();
    const step = {
      name: 'tick',
      startedAt: now.toISOString(),
      deadlineAt: new Date(now.getTime() + 60_000).toISOString(),
    };
    const run = { concern: 'edge', runId: 'run-2', pid: holder.pid, step };
    await startRun({ paths: machine, now, log: silentLog }, run);
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    holder.tell('stop');
    await holder.ended;
  });

  it('has nothing to say before a first tick', async () => {
    const end = await makeEdge().reeve('heartbeat');
    expect([end.status, end.stdout]).toEqual([0, 'nothing has been published yet\n']);
  });
});

describe('a heartbeat of one box that is app and edge', () => {
  it('tells of both', async () => {
    const machine = makeBox();
    await addNode(machine, 'box', 0);
    await addNode(machine, 'box-edge', 0);
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stdout]).toEqual([0, 'node box is alive\nnode box-edge is alive\n']);
    expect([reported(machine, 'box')?.nodeId, reported(machine, 'box-edge')?.nodeId]).toEqual([
      'box',
      'box-edge',
    ]);
    expect(reported(machine, 'box')?.host).toEqual(reported(machine, 'box-edge')?.host);
  });

  it.each([
    ['box', 'box-edge', 'edge'],
    ['box-edge', 'box', 'reconcile'],
  ] as const)('tells of %s alone where %s does not live, and names that', async (living, dead, concern) => {
    const machine = makeBox();
    await addNode(machine, living, 0);
    await addNode(machine, dead, long);
    const end = await machine.reeve('heartbeat');
    expect([end.status, reported(machine, living)?.nodeId, reported(machine, dead)]).toEqual([
      1,
      living,
      null,
    ]);
    expect(end.stderr).toMatch(new RegExp(`^reeve: cannot call node "${dead}" alive: ${concern} last ended`));
    expect(end.stderr).not.toContain(`"${living}"`);
  });

  it('names both where neither lives', async () => {
    const machine = makeBox();
    await addNode(machine, 'box', long);
    await addNode(machine, 'box-edge', long);
    const end = await machine.reeve('heartbeat');
    expect([end.status, reported(machine, 'box'), reported(machine, 'box-edge')]).toEqual([1, null, null]);
    expect(end.stderr).toMatch(/node "box" alive: reconcile .*; cannot call node "box-edge" alive: edge /);
  });

  it('tells of the one that has published so far', async () => {
    const machine = makeBox();
    await addNode(machine, 'box', 0);
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stdout]).toEqual([0, 'node box is alive\n']);
  });
});
