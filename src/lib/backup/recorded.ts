// backups.json for those who only look: `status`, `doctor`, retention. Its owner repairs it.
import type { BaseContext } from '../context.ts';
import { readDocument } from '../state/document.ts';
import { type BackupsDocument, backupsDocument, backupsPath, emptyBackups } from './state.ts';

/** What the last runs have recorded; nothing where that is missing or damaged, which the next run tells. */
export async function readRecorded({
  paths,
  clock,
  log,
}: Pick<BaseContext, 'paths' | 'clock' | 'log'>): Promise<BackupsDocument> {
  const how = { now: clock.now(), log, repair: false };
  const read = await readDocument(backupsPath(paths), backupsDocument, how);
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : emptyBackups;
}
