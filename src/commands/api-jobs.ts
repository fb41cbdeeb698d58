// `reeve api jobs`: the node's API for jobs.
import { runJobsApi } from '../lib/api-jobs/run.ts';
import { UsageError } from '../lib/errors.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const { listen } = options;
  return await runJobsApi(base, {
    listen: typeof listen === 'string' ? listen : undefined,
    idleMs: parseIdle(options['idle']),
    loadContext,
  });
}

function parseIdle(raw: unknown): number | undefined {
  if (typeof raw !== 'string') return undefined;
  const seconds = /^\d{1,6}(\.\d{1,3})?$/.test(raw) ? Number(raw) : 0;
  if (seconds > 0) return seconds * 1000;
  throw new UsageError(`cannot use --idle ${JSON.stringify(raw)}: it must be a number of seconds`);
}
