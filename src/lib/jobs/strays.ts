// What lies among the open jobs and is none of them: a directory or a file that somebody has put there.
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { externalIdPattern } from '../ids.ts';
import { fileError } from '../state/file-error.ts';
import { fileStamp } from '../time.ts';
import { openJobsDir } from './records.ts';

/** What lies among the open jobs and is none is set aside once, so that nothing trips over it again; it takes no slot. */
export async function setStraysAside({
  paths,
  clock,
  log,
}: Pick<BaseContext, 'paths' | 'clock' | 'log'>): Promise<void> {
  const directory = openJobsDir(paths);
  const options = { withFileTypes: true, encoding: 'buffer' } as const;
  const entries = await readdir(directory, options).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
  for (const entry of entries) {
    const name = entry.name.toString();
    if (name.startsWith('.') || (entry.isDirectory() && externalIdPattern.test(name))) continue;
    const path = join(directory, name);
    // A name may have 255 bytes, and none of them has to be text.
    const setAside = join(directory, `.corrupt-${fileStamp(clock.now())}-${cutName(entry.name)}`);
    try {
      await rename(Buffer.concat([Buffer.from(`${directory}/`), entry.name]), setAside);
      log.warning('what is no job was set aside', { path, setAside });
    } catch (error) {
      log.warning(describeError(fileError('set aside', path, error)));
    }
  }
}

function cutName(name: Buffer): string {
  return name.subarray(0, 64).toString().replaceAll('\ufffd', '_');
}
