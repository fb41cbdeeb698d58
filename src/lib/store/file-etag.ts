// Entity tags of the file store. A document's tag is its content's sha256, so that a file that was copied, restored or
// edited by hand keeps a true one. Hashing large objects for each listing would cost more than it is worth: theirs
// names the very write (inode and change time), which every writer of ours renews by renaming a new file over it.
import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

const maxHashedBytes = 1024 * 1024;

export async function readEtag(handle: FileHandle, about: BigIntStats): Promise<string> {
  if (about.size > maxHashedBytes) return etagOfWrite(about);
  return hashBytes(await handle.readFile());
}

/** The tag of content that has been read with the same handle. */
export function etagOf(bytes: Uint8Array, about: BigIntStats): string {
  return about.size > maxHashedBytes ? etagOfWrite(about) : hashBytes(bytes);
}

function hashBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function etagOfWrite(about: BigIntStats): string {
  return [about.size, about.ino, about.ctimeNs].map((part) => part.toString(36)).join('-');
}
