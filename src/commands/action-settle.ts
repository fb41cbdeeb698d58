// `reeve action settle`: brings what is running to its end, as its nodes report.
import { runExecutor } from '../lib/action/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  return await runExecutor(await loadContext(), {
    ...{ waitMs: parseWait(options['wait']), dispatch: false, settle: true },
  });
}
