// `reeve proxy remove INSTANCE`.
import { requireSection } from '../lib/config/rules.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { removeInstance } from '../lib/proxy/set.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, options, loadContext }: CommandInput): Promise<Outcome> {
  const ctx = await loadContext();
  requireSection(ctx.config, 'commands');
  const { wait } = options;
  return await removeInstance(ctx, args[0] ?? '', wait === undefined ? {} : { waitMs: parseWait(wait) });
}
