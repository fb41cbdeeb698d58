// What a node is no longer to be given, since somebody has taken it back.
import type { Stats } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { planWithdraw } from '../../../src/lib/action/plan.ts';
import type { Found, FoundAction, Handed } from '../../../src/lib/actions/control/found.ts';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { type ActionState, actionStates } from '../../../src/lib/deploy-runner/layout.ts';

const approval = { from: 'pending', to: 'approved', timestamp: 1_780_000_000, by: 'webui' };
const away = { from: 'approved', to: 'cancelled', timestamp: 1_780_000_060, by: 'webui' };

function found(state: ActionState, history: readonly object[] = [approval]): FoundAction {
  const fields = { action_id: 'redeploy-a-b', type: 'redeploy', node: 'a', service: 'b' };
  const bytes = Buffer.from(JSON.stringify({ ...fields, transition_history: history }));
  const action = parseAction(bytes);
  return { kind: 'action', state, id: action.actionId, action, bytes, about: {} as Stats };
}

function handed(history?: readonly object[]): Handed {
  const { id, action, bytes } = found('approved', history);
  return { node: 'a', id, action, bytes };
}

const unread: Found = { kind: 'refused', state: 'running', id: 'redeploy-a-b', reason: 'x', isFile: false };
const plan = (everywhere: Found[], history?: readonly object[]) =>
  planWithdraw([{ handed: handed(history), everywhere }]).map((step) => step.found.state);

describe('planWithdraw', () => {
  it.each(actionStates)('D3 of a %s action takes only what is not to be deployed any more', (state) => {
    const isBack = ['pending', 'rejected', 'cancelled'].includes(state);
    expect(plan([found(state, [approval, away])])).toStrictEqual(isBack ? [state] : []);
  });

  it('leaves alone what is approved or running as well, readable or not, and what lies nowhere', () => {
    const cancelled = found('cancelled');
    expect(plan([])).toStrictEqual([]);
    for (const other of [found('approved'), found('running'), unread])
      expect(plan([cancelled, other])).toStrictEqual([]);
    expect(plan([cancelled, found('completed')])).toStrictEqual(['cancelled']);
  });

  it('leaves another approval of the id alone', () => {
    const earlier = { ...approval, timestamp: approval.timestamp - 60 };
    expect(plan([found('cancelled', [earlier, away])])).toStrictEqual([]);
    expect(plan([found('cancelled', [approval, away, { ...approval, by: 'ann' }])])).toStrictEqual([]);
  });

  it('knows an action without an approval by its bytes, and not while it is pending', () => {
    expect(plan([found('cancelled', [])], [])).toStrictEqual(['cancelled']);
    expect(plan([found('cancelled', [away])], [])).toStrictEqual([]);
    expect(plan([found('pending', [])], [])).toStrictEqual([]);
  });
});
