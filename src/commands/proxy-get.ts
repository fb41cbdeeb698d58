// `reeve proxy get INSTANCE`.
import { requireSection } from '../lib/config/rules.ts';
import type { Outcome } from '../lib/outcome.ts';
import { getInstance } from '../lib/proxy/list.ts';
import type { CommandInput } from './command.ts';

export async function run({ args, loadContext }: CommandInput): Promise<Outcome> {
  const ctx = await loadContext();
  requireSection(ctx.config, 'commands');
  return await getInstance(ctx, args[0] ?? '');
}
