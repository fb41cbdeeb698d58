// `reeve proxy sync`.
import { requireSection } from '../lib/config/rules.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { prepareProxy, runSync } from '../lib/proxy/sync.ts';
import type { CommandInput } from './command.ts';
import { loadCommandsLeniently } from './leniently.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const { wait, writeOnly } = input.options;
  const waiting = wait === undefined ? {} : { waitMs: parseWait(wait) };
  if (writeOnly === true) return await prepareProxy(input.base, await loadCommandsLeniently(input), waiting);
  const ctx = await input.loadContext();
  return await runSync(ctx, requireSection(ctx.config, 'commands'), waiting);
}
