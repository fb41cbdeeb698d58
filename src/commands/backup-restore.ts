// `reeve backup restore`: a dump back into a database.
import { runRestore } from '../lib/backup/restore/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { parseSetFlag } from './backup-flags.ts';
import type { CommandInput } from './command.ts';
import { requireServiceKey } from './flags.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  const [service = '', database = ''] = args;
  const key = requireServiceKey(service);
  const stamp = parseSetFlag(options['set']);
  return await runRestore(await loadContext(), {
    ...{ key, database },
    target: options['to'] === undefined ? database : String(options['to']),
    ...(stamp === undefined ? {} : { stamp }),
    replaces: options['force'] === true,
    restoresRoles: options['globals'] === true,
    yes: options['yes'] === true,
    waitMs: parseWait(options['wait']),
  });
}
