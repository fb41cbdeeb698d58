// `reeve api commands`: the node's management API for agenda's control plane.
import { runCommandsApi } from '../lib/api-commands/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { parseIdle } from './flags.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const { listen } = options;
  return await runCommandsApi(base, {
    listen: typeof listen === 'string' ? listen : undefined,
    idleMs: parseIdle(options['idle']),
    loadContext,
  });
}
