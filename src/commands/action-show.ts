// `reeve action show ID`: one action, whatever its state.
import { showAction } from '../lib/action/show.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, loadContext }: CommandInput): Promise<Outcome> {
  return await showAction(await loadContext(), args[0] ?? '');
}
