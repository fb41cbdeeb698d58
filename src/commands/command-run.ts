// `reeve command run KEY`: one command to its end. For its unit and the API, which start it.
import { runCommandById } from '../lib/commands/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  const [key = ''] = args;
  return await runCommandById(await loadContext(), key, { waitMs: parseWait(options['wait']) });
}
