// `reeve heartbeat`: one liveness report.
import { runHeartbeat } from '../lib/heartbeat/run.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ options, loadContext }: CommandInput): Promise<Outcome> {
  return await runHeartbeat(await loadContext(), {
    waitMs: parseWait(options['wait']),
    withCommands: async (ctx, commands) =>
      await (await import('../lib/heartbeat/sync-proxy.ts')).keepProxy(ctx, commands),
  });
}
