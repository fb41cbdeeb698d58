// `reeve backup prune`: what retention takes out of the stores of backups.
import { pruneBackups } from '../lib/backup/retention/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey } from './flags.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const only = parseServiceKey(options['service']);
  const isDryRun = options['dryRun'] === true;
  const waitMs = parseWait(options['wait']);
  return await pruneBackups(await loadContext(), {
    ...(only === undefined ? {} : { only }),
    isDryRun,
    waitMs,
  });
}
