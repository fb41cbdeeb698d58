// Looking into a directory that others fill: names of any bytes, and files that may be no files. Nothing is followed, nothing hangs,
// and no more is read than an action may have.
import { constants, type Dirent, type Stats } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { maxActionBytes } from '../deploy-runner/names.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';

/** `path`: as bytes, since a name may be no text. */
export type EntryName = { text: string; path: Buffer };

export type EntryList = { names: readonly EntryName[]; isCut: boolean };

/** Names alone cost little, and those that nobody looks for must not hide those that are looked for. */
export const mostNames = 200_000;

/**
 * In the order of their names, as far as they were read: `isCut` where there are more than `most`. Empty without the directory.
 * `shown`: its name in an error.
 */
export async function listEntries(directory: string, most: number, shown = directory): Promise<EntryList> {
  const names: EntryName[] = [];
  let isCut = false;
  try {
    // Node's types know names as text only.
    const entries = await opendir(directory, { encoding: 'buffer' as BufferEncoding });
    for await (const entry of entries as AsyncIterable<Dirent<string | Buffer>>) {
      isCut = names.length === most;
      if (isCut) break;
      const name = Buffer.from(entry.name as Buffer);
      names.push({ text: name.toString('utf8'), path: Buffer.concat([Buffer.from(`${directory}/`), name]) });
    }
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', shown, error);
  }
  return { names: names.sort((a, b) => Buffer.compare(a.path, b.path)), isCut };
}

export type OpenedEntry =
  | { kind: 'file'; bytes: Buffer; about: Stats }
  /** `mark`: this very thing and no other of its name. */
  | { kind: 'refused'; reason: string; mark: string }
  | { kind: 'gone' };

/** Throws where the directory itself is the trouble. `shown`: its name in an error. */
export async function openEntry(
  path: Buffer | string,
  maxBytes = maxActionBytes,
  shown = path.toString(),
): Promise<OpenedEntry> {
  try {
    // Opening a device may be an effect by itself.
    const about = await lstat(path);
    const refused = refuse(about, maxBytes);
    return refused ?? (await readRegular(path, maxBytes));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (code === 'ENOENT') return { kind: 'gone' };
    if (code === 'ELOOP') return { kind: 'refused', reason: 'it is a symbolic link', mark: code };
    if (code === 'ENXIO') return { kind: 'refused', reason: 'it is no regular file', mark: code };
    if (code === 'EIO') return { kind: 'refused', reason: describeError(error), mark: code };
    throw fileError('read', shown, error);
  }
}

async function readRegular(path: Buffer | string, maxBytes: number): Promise<OpenedEntry> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const about = await handle.stat();
    const refused = refuse(about, maxBytes);
    if (refused !== undefined) return refused;
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    // It may have grown meanwhile.
    if (length > maxBytes) return tooLarge(about, maxBytes);
    return { kind: 'file', bytes: buffer.subarray(0, length), about };
  } finally {
    await handle.close();
  }
}

function refuse(about: Stats, maxBytes: number): OpenedEntry | undefined {
  const kind = nameKind(about);
  if (kind !== undefined) return { kind: 'refused', reason: `it is ${kind}`, mark: markOf(about) };
  return about.size > maxBytes ? tooLarge(about, maxBytes) : undefined;
}

function tooLarge(about: Stats, maxBytes: number): OpenedEntry {
  return { kind: 'refused', reason: `it is larger than ${maxBytes} bytes`, mark: markOf(about) };
}

function nameKind(about: Stats): string | undefined {
  if (about.isFile()) return undefined;
  if (about.isSymbolicLink()) return 'a symbolic link';
  if (about.isDirectory()) return 'a directory';
  if (about.isFIFO()) return 'a pipe';
  if (about.isSocket()) return 'a socket';
  return 'a device';
}

function markOf({ dev, ino, size, mtimeMs }: Stats): string {
  return `${dev} ${ino} ${size} ${mtimeMs}`;
}
