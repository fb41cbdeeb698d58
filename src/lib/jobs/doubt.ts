// Whether a claim may have been granted whose answer never came: a mark beside the open jobs, from when a request has failed or its
// process was killed until the server could be asked about it. Without the mark only a question is not asked, so nothing here throws.
import { existsSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { openJobsDir } from './records.ts';

export function isInDoubt(paths: Pick<Paths, 'stateDir'>): boolean {
  return existsSync(markPath(paths));
}

export function markDoubt(paths: Pick<Paths, 'stateDir'>): void {
  try {
    mkdirSync(openJobsDir(paths), { recursive: true, mode: 0o700 });
    writeFileSync(markPath(paths), '', { mode: 0o600 });
  } catch {
    // A full disk: then there are other troubles.
  }
}

export function clearDoubt(paths: Pick<Paths, 'stateDir'>): void {
  try {
    unlinkSync(markPath(paths));
  } catch {
    // It is gone, or it is asked once more.
  }
}

function markPath(paths: Pick<Paths, 'stateDir'>): string {
  return join(openJobsDir(paths), '.claim-in-doubt');
}
