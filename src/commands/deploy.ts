// `deploy FILE` and `deploy --remove PROJECT`: desired state in, by way of the store.
import { UsageError } from '../lib/errors.ts';
import type { Outcome } from '../lib/outcome.ts';
import { type DeployRequest, deploy } from '../lib/release/deploy.ts';
import { readReleaseOptions } from '../lib/release/options.ts';
import type { CommandInput } from './command.ts';
import { requireProject, requireServiceKey } from './flags.ts';

export async function run(input: CommandInput): Promise<Outcome> {
  const { file, wait } = readFileAndWait(input);
  const options = readReleaseOptions({ ...input.options, wait });
  const what = readWhat(file, input.options);
  return await deploy(await input.loadContext(), { ...options, what });
}

function readWhat(file: string | undefined, options: CommandInput['options']): DeployRequest['what'] {
  const { remove, service } = options;
  if (typeof remove === 'string') {
    if (file !== undefined) throw new UsageError('--remove takes a project away: it needs no file');
    if (service !== undefined)
      throw new UsageError('--remove takes a whole project away: it cannot stand beside --service');
    return { remove: requireProject(remove) };
  }
  if (file === undefined) throw new UsageError('nothing to deploy: name a file, or --remove PROJECT');
  return { file, service: typeof service === 'string' ? requireServiceKey(service) : undefined };
}

/** In `--wait FILE` the parser takes the file for the seconds. */
function readFileAndWait({ args, options }: CommandInput): { file: string | undefined; wait: unknown } {
  const [file] = args;
  const { wait } = options;
  if (file === undefined && typeof wait === 'string' && !/^\d+$/.test(wait))
    return { file: wait, wait: true };
  return { file, wait };
}
