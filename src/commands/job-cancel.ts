// `reeve job cancel ID`: asks for the end of one job.
import { cancelJob } from '../lib/job/view/cancel.ts';
import { cleanReason } from '../lib/jobs/cancel-reason.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { explainUnknownJob } from './unknown-job.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const { base, args, options } = input;
  const { reason: given } = options;
  const reason = typeof given === 'string' ? cleanReason(given) : '';
  return await cancelJob(base, {
    id: args[0] ?? '',
    reason: reason === '' ? 'cancelled by an operator' : reason,
    yes: options['yes'] === true,
  }).catch(explainUnknownJob(input));
}
