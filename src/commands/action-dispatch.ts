// `reeve action dispatch`: gives what is approved to its nodes; for the timer, it settles first and follows what is under way.
import { followExecutor, parseWindow } from '../lib/action/follow.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const waitMs = parseWait(options['wait']);
  const windowMs = parseWindow(options['window']);
  return await followExecutor(await loadContext(), {
    ...{ waitMs, windowMs, dispatch: true },
    settle: options['settle'] === true,
  });
}
