// `reeve job logs ID`: the output of one job on our own stdout and stderr. With --json the answer tells where it lies.
import { showLogs } from '../lib/job/view/logs.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';
import { explainUnknownJob } from './unknown-job.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const { base, args, options } = input;
  const { stdout, stderr } = process;
  return await showLogs(base, {
    id: args[0] ?? '',
    follow: options['follow'] === true,
    sinks: options['json'] === true ? undefined : { stdout, stderr },
  }).catch(explainUnknownJob(input));
}
