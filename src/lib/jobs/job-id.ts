// The server's id of a job whose directory is named by a digest of it: kept beside the claim, as nobody could be told of a job whose
// claim is damaged otherwise.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { jobKey } from './records.ts';

const digest = /^[0-9a-f]{64}$/;

/** Nothing where the directory has the id for its name. */
export async function keepJobId(directory: string, jobId: string): Promise<void> {
  if (jobKey(jobId) === jobId) return;
  await writeFileAtomic(join(directory, 'id'), jobId, { makeDirectory: false });
}

/** Undefined where the directory's name is a digest, and of what is not known. */
export async function readJobId(about: { key: string; directory: string }): Promise<string | undefined> {
  const { key, directory } = about;
  if (!digest.test(key)) return key;
  const kept = await readFile(join(directory, 'id'), 'utf8').catch(() => undefined);
  return kept !== undefined && jobKey(kept) === key ? kept : undefined;
}
