// `reeve job list`: what this node is at, and what it has done.
import { listJobs } from '../lib/job/view/list.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options }: CommandInput): Promise<Outcome> {
  return await listJobs(base, { all: options['all'] === true });
}
