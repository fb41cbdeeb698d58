// `reeve backup`: dumps of the databases that are due.
import { runBackup } from '../lib/backup/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey } from './flags.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const only = parseServiceKey(options['service']);
  const isNow = options['now'] === true;
  const waitMs = parseWait(options['wait']);
  return await runBackup(await loadContext(), { ...(only === undefined ? {} : { only }), isNow, waitMs });
}
