// `reeve job cancel ID`: asks for the end of one job.
import { cancelJob } from '../lib/job/view/cancel.ts';
import { cleanReason } from '../lib/jobs/cancel-reason.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, args, options }: CommandInput): Promise<Outcome> {
  const { reason: given } = options;
  const reason = typeof given === 'string' ? cleanReason(given) : '';
  return await cancelJob(base, {
    id: args[0] ?? '',
    reason: reason === '' ? 'cancelled by an operator' : reason,
    yes: options['yes'] === true,
  });
}
