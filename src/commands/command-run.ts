// `reeve command run KEY`: one command to its end. For its unit and the API, which start it.
import { runCommandById } from '../lib/commands/run.ts';
import { failUnconfigured } from '../lib/commands/settle.ts';
import { requireSection } from '../lib/config/rules.ts';
import type { Context } from '../lib/context.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const [key = ''] = input.args;
  const options = { waitMs: parseWait(input.options['wait']) };
  const ctx = await requireContext(input).catch((error: unknown) =>
    failUnconfigured(input.base, key, { ...options, error }),
  );
  return await runCommandById(ctx, key, options);
}

async function requireContext({ loadContext }: CommandInput): Promise<Context> {
  const ctx = await loadContext();
  requireSection(ctx.config, 'commands');
  return ctx;
}
