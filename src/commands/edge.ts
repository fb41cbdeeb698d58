// `reeve edge`: one tick of the edge.
import { runEdge } from '../lib/edge/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const dryRun = options['dryRun'] === true;
  return await runEdge(await loadContext(), { waitMs: parseWait(options['wait']), dryRun });
}
