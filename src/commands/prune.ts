// `reeve prune`: images that nothing refers to; a volume only by name.
import { UsageError } from '../lib/errors.ts';
import { namePattern } from '../lib/ids.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { pruneImages } from '../lib/prune/run.ts';
import { confirm } from '../lib/report/confirm.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const waitMs = parseWait(options['wait']);
  const volume = options['volumes'];
  if (volume === undefined)
    return await pruneImages(await loadContext(), { dryRun: options['dryRun'] === true, waitMs });
  const [project = '', service = '', name = '', ...rest] = String(volume).split('/');
  if (rest.length > 0 || ![project, service, name].every((part) => namePattern.test(part))) {
    throw new UsageError(
      `${JSON.stringify(volume)} is no volume: give PROJECT/SERVICE/NAME, as in shop/db/data`,
    );
  }
  if (options['dryRun'] === true)
    throw new UsageError('--volumes has no --dry-run: it removes just the one named');
  const question = `Remove volume ${name} of ${project}/${service} with all its data?`;
  if (!(await confirm(base, options['yes'] === true, question))) {
    return { outcome: 'nothing-to-do', text: ['not confirmed: nothing was removed'] };
  }
  const noBackup = options['backup'] === false;
  // What reads backups is loaded only for this.
  const { pruneVolume } = await import('../lib/prune/volume.ts');
  return await pruneVolume(await loadContext(), { project, service, name, noBackup, waitMs });
}
