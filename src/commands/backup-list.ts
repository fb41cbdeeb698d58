// `reeve backup list`: what there is of each database, and how far it is proven.
import { listBackups } from '../lib/backup/list.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey } from './flags.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  return await listBackups(await loadContext(), parseServiceKey(options['service']));
}
