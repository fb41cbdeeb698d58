// Flags of a person's decision about an action.
import type { DecideRequest } from '../lib/action/decide.ts';
import { parseWait } from '../lib/lock/wait.ts';

/** The executor holds the lock for moments: a person need not come again for that. */
const usualWaitMs = 10_000;

export function readDecision(
  options: Readonly<Record<string, unknown>>,
): Pick<DecideRequest, 'reason' | 'yes' | 'waitMs'> {
  const { reason: given, wait } = options;
  // One line, as it stands in the history and the journal.
  const reason = typeof given === 'string' ? given.trim().replaceAll(/\p{Cc}+/gu, ' ') : '';
  return {
    reason: reason === '' ? undefined : reason,
    yes: options['yes'] === true,
    waitMs: wait === undefined ? usualWaitMs : parseWait(wait),
  };
}
