// `reeve job list`: what this node is at, and what it has done.
import { listJobs } from '../lib/job/view/list.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { requireSectionOfJobs } from './unknown-job.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const outcome = await listJobs(input.base, { all: input.options['all'] === true });
  const { jobs, unreadable } = outcome.data as { jobs: readonly unknown[]; unreadable: readonly unknown[] };
  if (jobs.length + unreadable.length === 0) await requireSectionOfJobs(input);
  return outcome;
}
