// `reeve action dispatch`: gives what is approved to its nodes; for the timer, it settles first.
import { runExecutor } from '../lib/action/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const waitMs = parseWait(options['wait']);
  return await runExecutor(await loadContext(), {
    ...{ waitMs, dispatch: true },
    settle: options['settle'] === true,
  });
}
