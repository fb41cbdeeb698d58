// `reeve proxy set INSTANCE PORT`.
import { requireSection } from '../lib/config/rules.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { setInstance } from '../lib/proxy/set.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  const ctx = await loadContext();
  requireSection(ctx.config, 'commands');
  const { wait } = options;
  const waiting = wait === undefined ? {} : { waitMs: parseWait(wait) };
  return await setInstance(ctx, args[0] ?? '', args[1] ?? '', waiting);
}
