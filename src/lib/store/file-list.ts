// The keys in a file store's directory. Names that begin with a dot (staging files, locks) are no keys.
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '../errors.ts';

/** Keys that begin with the prefix, in byte order: the order of S3, whatever the locale. */
export async function listFileKeys(root: string, prefix: string): Promise<string[]> {
  const directory = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  const keys = await walk(root, directory, (name) => `${directory}${name}`.startsWith(prefix));
  return keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** `directory` is empty or ends in a slash. The filter holds for its own names, not for those further down. */
async function walk(root: string, directory: string, accepts: (name: string) => boolean): Promise<string[]> {
  const keys: string[] = [];
  for (const entry of await readEntries(join(root, directory))) {
    if (entry.name.startsWith('.') || !accepts(entry.name)) continue;
    if (entry.isFile()) keys.push(`${directory}${entry.name}`);
    if (entry.isDirectory()) keys.push(...(await walk(root, `${directory}${entry.name}/`, () => true)));
  }
  return keys;
}

/** A directory that is not there, or that is a document, has no keys below it. */
async function readEntries(path: string): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}
