// `reeve job run KEY`: one job to its end. For units and for `claim`, which start it.
import { runJob } from '../lib/job/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  const [key = ''] = args;
  return await runJob(await loadContext(), key, { waitMs: parseWait(options['wait']) });
}
