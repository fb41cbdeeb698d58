// Where a program is that we would run.
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../config/environment.ts';

/** On the PATH that programs of ours get. Directories that are not absolute are passed over. */
export async function findProgram(
  name: string,
  searchPath = childEnvironment()['PATH'] ?? '',
): Promise<string | undefined> {
  const directories = searchPath.split(':').filter((directory) => directory.startsWith('/'));
  for (const directory of new Set(directories)) {
    const path = join(directory, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}
