// `reeve rsync-pull`: pull this node's actions, push its results.
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { runRsyncPull } from '../lib/rsync-pull/run.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  return await runRsyncPull(await loadContext(), { waitMs: parseWait(options['wait']) });
}
