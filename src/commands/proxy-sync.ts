// `reeve proxy sync`.
import { requireSection } from '../lib/config/rules.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { loadLeniently, prepareProxy, runSync } from '../lib/proxy/sync.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const load = async () => requireSection((await loadContext()).config, 'commands');
  const { wait, writeOnly } = options;
  const waiting = wait === undefined ? {} : { waitMs: parseWait(wait) };
  if (writeOnly === true) return await prepareProxy(base, await loadLeniently(load, base.log), waiting);
  return await runSync(base, await load(), waiting);
}
