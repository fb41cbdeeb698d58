// `reeve proxy list`.
import { requireSection } from '../lib/config/rules.ts';
import type { Outcome } from '../lib/outcome.ts';
import { listInstances } from '../lib/proxy/list.ts';
import type { CommandInput } from './command.ts';

export async function run({ loadContext }: CommandInput): Promise<Outcome> {
  const ctx = await loadContext();
  requireSection(ctx.config, 'commands');
  return await listInstances(ctx);
}
