// `reeve job show ID`: one job, whether open or ended.
import { showJob } from '../lib/job/view/show.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, args }: CommandInput): Promise<Outcome> {
  return await showJob(base, args[0] ?? '');
}
