// `reconcile --watch`: a node without systemd, in the foreground, against a real engine.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeNode, type RunningReeve, type TestNode } from '../../support/node.ts';
import { aWorkerDeploy } from '../../support/services.ts';

type LastRun = { runId: string; endedAt: string | null; exitCode: number | null };

/** A tick of an hour: what happens, happens for another reason. */
const slow = { cluster: { intervals: { tick: '1h', edge: '250ms' } } };

function startWatch(node: TestNode, env: Readonly<Record<string, string>> = {}): RunningReeve {
  const watch = node.start(['reconcile', '--watch', '--debug'], env);
  onTestFinished(() => void watch.child.kill('SIGKILL'));
  return watch;
}

/** The first activation after that one, once it has ended. */
async function nextRun(node: TestNode, previous?: LastRun): Promise<LastRun> {
  const limit = { timeout: 30_000 };
  await expect.poll(() => isEnded(node) && lastRun(node).runId !== previous?.runId, limit).toBe(true);
  return lastRun(node);
}

function isEnded(node: TestNode): boolean {
  try {
    return lastRun(node).endedAt !== null;
  } catch {
    return false;
  }
}

const lastRun = (node: TestNode): LastRun => node.state('runs/reconcile.json') as LastRun;

const wake = (node: TestNode): void => writeFileSync(join(node.root, 'run/wake/reconcile'), '');

describe('a watched node', () => {
  it('follows its desired state as it changes, and ends cleanly on SIGTERM', async () => {
    const node = makeNode(slow);
    const watch = startWatch(node);
    await watch.waitFor(`watching node ${node.nodeId}`);
    const first = await nextRun(node);
    await node.deploy([aWorkerDeploy()], '--no-notify');
    await nextRun(node, first);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
    watch.child.kill('SIGTERM');
    const end = await watch.end;
    expect([end.status, end.signal]).toEqual([143, null]);
    expect(lastRun(node)).toMatchObject({ exitCode: 0, endedAt: expect.any(String) });
  });

  it('is woken as by a path unit, and does not wake itself by what it publishes', async () => {
    const node = makeNode(slow);
    node.writeDesired([]);
    const watch = startWatch(node);
    const first = await nextRun(node);
    wake(node);
    const second = await nextRun(node, first);
    wake(node);
    await nextRun(node, second);
    watch.child.kill('SIGINT');
    const end = await watch.end;
    expect(end.status).toBe(130);
    // One look each.
    expect(end.stderr.match(/GET path=\/containers\/json/g)).toHaveLength(3);
  });

  it('says that it is alive between its ticks, without looking again (L108)', async () => {
    const node = makeNode({ cluster: { intervals: { tick: '1h', edge: '250ms', liveness: '1s' } } });
    node.writeDesired([]);
    startWatch(node);
    const first = await nextRun(node);
    await expect
      .poll(() => Date.parse(node.status().lastSeen) - Date.parse(String(first.endedAt)), { timeout: 30_000 })
      .toBeGreaterThan(1500);
    expect(lastRun(node).runId).toBe(first.runId);
  });

  it('ticks without any news', async () => {
    const node = makeNode({ cluster: { intervals: { tick: '300ms', edge: '250ms' } } });
    node.writeDesired([]);
    const watch = startWatch(node);
    await nextRun(node, await nextRun(node));
    watch.child.kill('SIGTERM');
    await watch.end;
  });

  it('outlives a desired state that it refuses, and takes the next one', async () => {
    const node = makeNode(slow);
    node.writeDesired('{"version": 3, "nodeId":');
    const watch = startWatch(node);
    const first = await nextRun(node);
    expect(first.exitCode).toBe(65);
    node.writeDesired([]);
    // One may have found it half written.
    await expect.poll(() => isEnded(node) && lastRun(node).exitCode, { timeout: 30_000 }).toBe(0);
    watch.child.kill('SIGTERM');
    await watch.end;
  });

  it('runs once and ends where LAUNCHPAD_ONCE says so (L161)', async () => {
    const node = makeNode(slow);
    node.writeDesired([]);
    const end = await startWatch(node, { LAUNCHPAD_ONCE: '1' }).end;
    expect([end.status, lastRun(node).exitCode]).toEqual([0, 0]);
  });

  it('refuses a configuration that is wrong from the start', async () => {
    const node = makeNode(slow);
    writeFileSync(join(node.root, 'etc/reeve.yaml'), 'cluster: { nodeID: x }');
    expect((await startWatch(node).end).status).toBe(78);
  });
});
