// `reeve action list`: what waits for an operator, and what is under way.
import { listActions } from '../lib/action/list.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  return await listActions(await loadContext(), { all: options['all'] === true });
}
