// What a person is told of an action before and after it was decided: whether its node is one of this host's, what it waits for, and how
// it has ended.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { actionId, anAction, type ControlHost, makeControlHost } from '../../support/control-host.ts';

/** The warning without its beginning. */
function problemOf({ root, dir }: ControlHost, node: string): string {
  const events = join(dir, 'homelab/events');
  return `node ${node} has never been set up here: there is neither deploy/${node} in ${root} nor ${node} in ${events}`;
}

describe('D3 a node that nobody has set up', () => {
  it('is named before the question, and in what is shown', async () => {
    const host = makeControlHost();
    host.propose({ node: 'wbe-1' });
    const problem = problemOf(host, 'wbe-1');
    const shown = await host.reeve('action', 'show', actionId);
    expect([shown.status, shown.stdout]).toEqual([0, expect.stringContaining(`  warning  ${problem}\n`)]);
    expect((await host.reeve('action', 'show', actionId, '--json')).json().actions).toMatchObject([
      { nodeProblem: problem },
    ]);
    const asked = host.start(['action', 'approve', actionId]);
    asked.child.stdin.end();
    expect(await asked.end).toMatchObject({
      status: 64,
      stderr: `warning: ${problem}\nreeve: cannot ask "approve ${actionId}?" without a terminal: say --yes\n`,
    });
    const approved = await host.reeve('action', 'approve', actionId, '--yes');
    expect([approved.status, approved.stderr]).toEqual([0, `warning: ${problem}\n`]);
  });

  it.each(['actions/deploy/web-1', 'events/web-1', 'events/2026-11-30/web-1'])(
    'is another one than that which has %s',
    async (directory) => {
      const host = makeControlHost();
      host.propose();
      mkdirSync(join(host.dir, 'homelab', directory), { recursive: true });
      expect((await host.reeve('action', 'show', actionId)).stdout).not.toContain('never been set up');
      expect(await host.reeve('action', 'approve', actionId, '--yes')).toMatchObject({
        ...{ status: 0, stderr: '' },
      });
    },
  );

  it('is nothing that concerns another executor, nor a rejection', async () => {
    const host = makeControlHost();
    host.propose({ type: 'container_restart' });
    expect((await host.reeve('action', 'approve', actionId, '--yes')).stderr).toBe('');
    host.propose({ action_id: 'other' });
    expect((await host.reeve('action', 'reject', 'other', '--yes')).stderr).toBe('');
  });
});

describe('D42 several of one id', () => {
  it('are shown with those first that are open, and then with the latest', async () => {
    const host = makeControlHost();
    const steps: Record<string, number> = { failed: 300, cancelled: 100, completed: 200, running: 50 };
    for (const [state, timestamp] of Object.entries(steps)) {
      const history = [{ from: 'approved', to: state, timestamp: 1_780_000_000 + timestamp, by: 'system' }];
      host.write(`homelab/actions/${state}/${actionId}.json`, {
        ...{ ...anAction(), status: state, transition_history: history },
      });
    }
    host.propose();
    const { stdout } = await host.reeve('action', 'show', actionId);
    const states = [...stdout.matchAll(new RegExp(`^${actionId}: (.*)$`, 'gm'))].map(([, state]) => state);
    expect(states).toEqual(['running', 'pending', 'failed', 'completed', 'cancelled']);
  });

  it('are told apart: the one that waits says for what', async () => {
    const host = makeControlHost();
    host.propose();
    const first = await host.reeve('action', 'approve', actionId, '--yes');
    expect(first.stdout).not.toContain('it waits');
    await host.reeve('action', 'dispatch');
    host.propose();
    const second = await host.reeve('action', 'approve', actionId, '--yes');
    expect(second.stdout).toContain('it waits: an earlier one of this id is running\n');
    const { actions } = (await host.reeve('action', 'show', actionId, '--json')).json();
    const waits = actions.map(({ state, ...one }: Record<string, unknown>) => [state, one['waits']]);
    expect(waits).toEqual([
      ['approved', 'an earlier one of this id is running'],
      ['running', null],
    ]);
    expect((await host.reeve('action', 'show', actionId)).stdout).toContain(
      '  waits    an earlier one of this id is running\n',
    );
  });
});

it('D11 lists with --all when and why each has ended', async () => {
  const host = makeControlHost();
  host.propose();
  await host.reeve('action', 'approve', actionId, '--yes');
  await host.reeve('action', 'dispatch');
  host.age(actionId, 1_000);
  await host.reeve('action', 'settle');
  for (const [id, words] of [['put-aside', ['--reason', 'not now']] as const, ['refused', []] as const]) {
    host.propose({ action_id: id });
    await host.reeve('action', 'reject', id, '--yes', ...words);
  }
  host.write('homelab/actions/completed/bare.json', { ...anAction(), action_id: 'bare' });
  host.propose({ action_id: 'waits' });
  const { stdout } = await host.reeve('action', 'list', '--all');
  const [header, ...rows] = stdout.trimEnd().split('\n');
  expect(header).toMatch(/ CREATED +ENDED +WHY$/);
  expect(rows.map((row) => row.split(/ {2,}/).filter((_, index) => [0, 1, 7, 8].includes(index)))).toEqual([
    ['pending', 'waits', '-', 'unhealthy for 5 minutes'],
    ['rejected', 'put-aside', expect.stringMatching(/ ago$/), 'not now'],
    ['rejected', 'refused', expect.stringMatching(/ ago$/), 'by operator-ann'],
    ['completed', 'bare', expect.stringMatching(/ ago$/), 'unhealthy for 5 minutes'],
    ['failed', actionId, expect.stringMatching(/ ago$/), 'node web-1 has reported nothing for 15m'],
  ]);
  const { actions } = (await host.reeve('action', 'list', '--all', '--json')).json();
  const ends = actions.map(({ id, endedAt, endedBy, endReason }: Record<string, unknown>) => [
    ...[id, endedAt === null ? null : 'ended', endedBy, endReason],
  ]);
  expect(ends).toEqual([
    ['waits', null, null, null],
    ['put-aside', 'ended', 'operator-ann', 'not now'],
    ['refused', 'ended', 'operator-ann', null],
    ['bare', 'ended', null, null],
    [actionId, 'ended', 'system', 'node web-1 has reported nothing for 15m'],
  ]);
});
