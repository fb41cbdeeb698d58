// `reeve backup verify`: whether backups can be read, and restored.

import { runVerify } from '../lib/backup/verify/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { parseSetFlag } from './backup-flags.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey } from './flags.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  const only = parseServiceKey(options['service']);
  const stamp = parseSetFlag(options['set']);
  const restores = options['restore'] === true;
  const waitMs = parseWait(options['wait']);
  return await runVerify(await loadContext(), {
    ...(only === undefined ? {} : { only }),
    ...(stamp === undefined ? {} : { stamp }),
    ...{ restores, waitMs },
  });
}
