// `reeve action reject ID`: puts a pending action aside for good.
import { decideAction } from '../lib/action/decide.ts';
import type { Outcome } from '../lib/outcome.ts';
import { readDecision } from './action-flags.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  return await decideAction(await loadContext(), {
    id: args[0] ?? '',
    to: 'rejected',
    ...readDecision(options),
  });
}
