// Runs of `reeve deploy-action` side by side and one after another, and its configuration.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { until } from '../../support/balanced.ts';

const approvedAgain = (timestamp: number) => ({
  transition_history: [{ from: 'pending', to: 'approved', timestamp, by: 'operator-tg-7' }],
});

/** For a lock: flock(1) does that for it. */
function isWaiting(pid: number): boolean {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children.some((child) => readFileSync(`/proc/${child}/comm`, 'utf8') === 'flock\n');
  } catch {
    return false;
  }
}

/** The last run is over, so that whatever comes now is found by another. */
function isIdle(node: ActionsNode): boolean {
  const path = join(node.root, 'state/runs/deploy-action.json');
  if (!existsSync(path)) return false;
  const { endedAt } = JSON.parse(readFileSync(path, 'utf8')) as { endedAt: string | null };
  return endedAt !== null;
}

describe('several', () => {
  it('are done one after another, good and bad, in one run', async () => {
    const node = makeActionsNode();
    node.writeScript('test "$2" != db');
    for (const service of ['web', 'db', 'queue']) node.put(service);
    node.put('node-agent', { node: 'pi' });
    const { status, stdout } = await node.reeve('deploy-action');
    expect([status, stdout.trim().split('\n')]).toEqual([
      1,
      [
        'redeploy-vps-node-agent: rejected, node is "pi", and this is "vps"',
        'redeploy-vps-db: failed, exit status 1 (preflight)',
        'redeploy-vps-queue: succeeded',
        'redeploy-vps-web: succeeded',
      ],
    ]);
    expect(node.ran()).toEqual(['db', 'queue', 'web']);
    expect(
      node
        .results()
        .map(({ actionId, status: end }) => `${actionId} ${end}`)
        .sort(),
    ).toEqual([
      'redeploy-vps-db failed',
      'redeploy-vps-node-agent failed',
      'redeploy-vps-queue completed',
      'redeploy-vps-web completed',
    ]);
    expect(node.inbox()).toEqual([]);
  });

  it('at once: a second process has nothing to do, and says who is at it (D37)', async () => {
    const node = makeActionsNode();
    node.writeScript('until [ -e $ROOT/go ]; do sleep 0.05; done');
    node.put('web');
    const first = node.start('deploy-action');
    await until(() => node.ran().length === 1);
    const second = await node.reeve('deploy-action');
    expect([second.status, second.stderr]).toEqual([75, expect.stringContaining('reeve deploy-action')]);
    const waiting = node.start('deploy-action', '--wait', '60');
    node.write('go', '');
    expect((await first.ended).status).toBe(0);
    expect((await waiting.ended).status).toBe(0);
    expect([node.ran(), node.results().length]).toEqual([['web'], 1]);
  });

  it('at once: of ten processes one runs it, while nine wait for it (R37)', async () => {
    const node = makeActionsNode();
    node.writeScript('until [ -e $ROOT/go ]; do sleep 0.05; done');
    node.put('web');
    const all = Array.from({ length: 10 }, () => node.start('deploy-action', '--wait', '60'));
    const isSo = (): boolean =>
      all.filter(({ pid }) => isWaiting(pid)).length === 9 && node.ran().length === 1;
    await until(isSo, 90_000);
    node.write('go', '');
    const ends = await Promise.all(all.map(({ ended }) => ended));
    expect(ends.map(({ status }) => status)).toEqual(Array(10).fill(0));
    expect([node.ran(), node.results().length]).toEqual([['web'], 1]);
  });

  it('a later approval that comes while the earlier one is run is not lost', async () => {
    const node = makeActionsNode();
    node.writeScript(
      '[ -e $ROOT/second ] || { touch $ROOT/first; until [ -e $ROOT/second ]; do sleep 0.05; done; }',
    );
    node.put('web');
    const running = node.start('deploy-action');
    await until(() => existsSync(join(node.root, 'first')));
    node.put('web', approvedAgain(1_785_800_000));
    node.write('second', '');
    expect((await running.ended).status).toBe(0);
    expect([node.ran(), node.results().length, node.inbox()]).toEqual([['web', 'web'], 2, []]);
  });
});

describe('the configuration', () => {
  it('without the section says so', async () => {
    const node = makeActionsNode();
    node.write('reeve.yaml', '{}', 0o600);
    const { status, stderr } = await node.reeve('deploy-action');
    expect([status, stderr]).toEqual([78, expect.stringContaining('section actions is missing')]);
  });

  it('of the control side alone says so', async () => {
    const node = makeActionsNode();
    node.write('reeve.yaml', '{"actions": {"root": "/opt/homelab/actions"}}', 0o600);
    const { status, stderr } = await node.reeve('deploy-action');
    expect([status, stderr]).toEqual([78, expect.stringContaining('only the control side')]);
  });

  it('with a timeout that outlives the control side’s patience is refused (D40)', async () => {
    const node = makeActionsNode({ timeout: '900s' });
    expect((await node.reeve('deploy-action')).status).toBe(78);
  });
});

describe('--watch', () => {
  it('performs what comes, and ends by SIGTERM', async () => {
    const node = makeActionsNode();
    const watching = node.start('deploy-action', '--watch');
    await watching.waitFor('watching');
    // Long before the time alone would have it look again.
    await until(() => isIdle(node));
    node.put('web');
    await until(() => node.results().length === 1 && isIdle(node));
    node.put('db');
    await until(() => node.results().length === 2);
    watching.child.kill('SIGTERM');
    expect((await watching.ended).status).toBe(143);
    expect([node.ran(), node.inbox()]).toEqual([['web', 'db'], []]);
  });
});
