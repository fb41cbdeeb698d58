// Commands that look at jobs need no configuration. Where there is nothing to look at, it may tell why.
import { requireSection } from '../lib/config/rules.ts';
import { ConfigError, InputError } from '../lib/errors.ts';
import { unknownJob } from '../lib/job/view/gather.ts';
import type { CommandInput } from './command.ts';

/** For whoever finds no job: throws ConfigError where this node is to have none. What cannot be read says nothing of that. */
export async function requireSectionOfJobs({
  loadContext,
}: Pick<CommandInput, 'loadContext'>): Promise<void> {
  const ctx = await loadContext().catch((error: unknown) => {
    if (error instanceof ConfigError) return undefined;
    throw error;
  });
  if (ctx !== undefined) requireSection(ctx.config, 'jobs');
}

/** The same for whoever asks for a job that is not there. */
export function explainUnknownJob(
  input: Pick<CommandInput, 'loadContext'>,
): (error: unknown) => Promise<never> {
  return async (error) => {
    if (error instanceof InputError && error.code === unknownJob) await requireSectionOfJobs(input);
    throw error;
  };
}
