// `reeve api jobs`: the node's API for jobs.
import { runJobsApi } from '../lib/api-jobs/run.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { parseIdle } from './flags.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const { listen } = options;
  return await runJobsApi(base, {
    listen: typeof listen === 'string' ? listen : undefined,
    idleMs: parseIdle(options['idle']),
    loadContext,
  });
}
