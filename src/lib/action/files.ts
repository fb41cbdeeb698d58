// Writes into the tree of the control side, which belongs to others: a container's user may swap any name in it at any time. So root
// touches what it has opened itself, by its handle, and never by a name that could lead elsewhere by then.
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, mkdtemp, open, rename, rmdir, unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { openEntry } from '../actions/open.ts';
import { deployNames } from '../deploy-runner/layout.ts';
import { actionFileName, maxActionBytes } from '../deploy-runner/names.ts';
import { ConfigError, StepError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { type HeldDirectory, holdDirectory, withDirectory } from '../state/held-directory.ts';

type Look = Pick<Stats, 'mode'> & Partial<Pick<Stats, 'uid' | 'gid'>>;

/** The whole content is on disk before it has its name, with the owner and the mode that others read these files by. */
export async function writeWhole(
  directory: HeldDirectory,
  name: string,
  content: string | Buffer,
  { mode, uid, gid }: Look,
): Promise<void> {
  const part = `.reeve-part-${name.replace(/^\./, '')}`;
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  await unlinkIfThere(directory, part);
  try {
    const handle = await open(directory.at(part), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await fill(handle, Buffer.from(content));
      if (uid !== undefined && gid !== undefined) await handle.chown(uid, gid).catch(ignoreForeignOwner);
      await handle.chmod(mode & 0o777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(directory.at(part), directory.at(name));
  } catch (error) {
    await unlinkIfThere(directory, part).catch(() => {});
    throw error;
  }
}

async function fill(handle: FileHandle, bytes: Buffer): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, done);
    if (bytesWritten === 0) break;
    done += bytesWritten;
  }
  const { size } = await handle.stat();
  // The kernel tells of a full disk only on the next write.
  if (size !== bytes.length) throw new StepError(`only ${size} of ${bytes.length} bytes could be written`);
}

export async function isThere(directory: HeldDirectory, name: string): Promise<boolean> {
  return (await lookAt(directory, name)) !== undefined;
}

/** Of the name itself, wherever it may lead. */
async function lookAt(directory: HeldDirectory, name: string): Promise<Stats | undefined> {
  try {
    return await lstat(directory.at(name));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export async function unlinkIfThere(directory: HeldDirectory, name: string): Promise<void> {
  await unlink(directory.at(name)).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  });
}

/**
 * With the owner and the mode of the one that it is made in, from the moment that it is there. It is given away inside a directory of
 * our own, which nobody else may enter: so what is given away is what was made.
 */
export async function makeDirectory(parent: HeldDirectory, name: string): Promise<void> {
  if (await isThere(parent, name)) return;
  const own = basename(await mkdtemp(parent.at('.reeve-directory-')));
  try {
    const inside = await holdDirectory(parent.at(own), parent.path);
    try {
      await requireOwn(inside);
      await makeInside(inside, parent, name);
    } finally {
      await inside.handle.close();
    }
    await parent.handle.sync();
  } finally {
    await rmdir(parent.at(own)).catch(() => {});
  }
}

async function requireOwn({ handle, path }: HeldDirectory): Promise<void> {
  const { uid, mode } = await handle.stat();
  if (uid === process.geteuid?.() && (mode & 0o777) === 0o700) return;
  throw new StepError(
    `cannot make a directory in ${JSON.stringify(path)}: somebody has put another in its place`,
  );
}

async function makeInside(inside: HeldDirectory, parent: HeldDirectory, name: string): Promise<void> {
  const staged = randomBytes(8).toString('hex');
  await mkdir(inside.at(staged), 0o700);
  try {
    const { mode, uid, gid } = await parent.handle.stat();
    const made = await holdDirectory(inside.at(staged), parent.path);
    try {
      await made.handle.chown(uid, gid).catch(ignoreForeignOwner);
      await giveMode(made.handle, mode);
    } finally {
      await made.handle.close();
    }
    await rename(inside.at(staged), parent.at(name));
  } catch (error) {
    await rmdir(inside.at(staged)).catch(() => {});
    if (!(await isThere(parent, name))) throw error;
  }
}

/** The bit by which a group shares what is made there is nobody's to set in the unit's sandbox: it is left out then. */
async function giveMode(handle: FileHandle, mode: number): Promise<void> {
  await handle.chmod(mode & 0o7777).catch(async (error: unknown) => {
    if (systemErrorCode(error) !== 'EPERM') throw error;
    await handle.chmod(mode & 0o777);
  });
}

/** Only root gives files away. */
function ignoreForeignOwner(error: unknown): void {
  if (systemErrorCode(error) !== 'EPERM') throw error;
}

export type DispatchedFile = { root: string; node: string; id: string };

/** The file that a node pulls, with exactly these bytes. Nothing is written where they are there. */
export async function writeDispatched({ root, node, id }: DispatchedFile, bytes: Buffer): Promise<void> {
  const write = async (directory: HeldDirectory): Promise<void> => {
    const name = actionFileName(id);
    const shown = `${directory.path}/${name}`;
    try {
      const present = await openEntry(directory.at(name), maxActionBytes, shown);
      if (present.kind === 'file' && present.bytes.equals(bytes)) return;
      if (present.kind === 'refused') {
        throw new ConfigError(`cannot write ${JSON.stringify(shown)}: ${present.reason}`, {
          code: 'not-a-file',
        });
      }
      // Whoever fetches it for the node is another user, and there is nothing secret in it.
      await writeWhole(directory, name, bytes, { mode: 0o644 });
      await directory.handle.sync();
    } catch (error) {
      throw fileError('write', shown, error);
    }
  };
  await withDirectory(root, deployNames(node), write, makeDirectory);
}

/** What no node is to begin any more; without `isMeant` whatever it is. */
export async function removeDispatched(
  { root, node, id }: DispatchedFile,
  isMeant?: (bytes: Buffer) => boolean,
): Promise<void> {
  const remove = async (directory: HeldDirectory): Promise<void> => {
    const name = actionFileName(id);
    const shown = `${directory.path}/${name}`;
    try {
      const about = await lookAt(directory, name);
      // A directory is begun by no node, and keeps no action from its end.
      if (about === undefined || about.isDirectory()) return;
      if (isMeant !== undefined) {
        const opened = await openEntry(directory.at(name), maxActionBytes, shown);
        if (opened.kind !== 'file' || !isMeant(opened.bytes)) return;
      }
      await unlinkIfThere(directory, name);
      await directory.handle.sync();
    } catch (error) {
      throw fileError('remove', shown, error);
    }
  };
  await withDirectory(root, deployNames(node), remove).catch(ignoreMissing);
}

export function ignoreMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error;
}
