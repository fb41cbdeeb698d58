// `reeve job show ID`: one job, whether open or ended.
import { showJob } from '../lib/job/view/show.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { explainUnknownJob } from './unknown-job.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  return await showJob(input.base, input.args[0] ?? '').catch(explainUnknownJob(input));
}
