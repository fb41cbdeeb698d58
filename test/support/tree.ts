// What is in a directory, as values that can be compared.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Digest, mode and time of change of every file below the directory, by its path in it. */
export function digestTree(directory: string): Record<string, string> {
  const digests: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode, mtimeNs } = lstatSync(path, { bigint: true });
    const digest = createHash('sha256').update(readFileSync(path)).digest('hex');
    digests[relative(directory, path)] = `${digest} ${mode.toString(8)} ${mtimeNs}`;
  }
  return digests;
}
