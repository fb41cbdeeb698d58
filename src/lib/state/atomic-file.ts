// The one writer of files that must be old or new, never a third thing: staged in full beside the target, checked by
// reading back, synced, renamed over, and the directory synced. write-file-atomic alone publishes a short file on a
// full disk and reports success, so it only ever writes our private staging file.
import { constants } from 'node:fs';
import { copyFile, link, lstat, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import writeStagingFile from 'write-file-atomic';
import { ConfigError, systemErrorCode } from '../errors.ts';
import { ensureDirectory, syncDirectory } from './directory.ts';
import { fileError } from './file-error.ts';
import { discardStaging, forgetStaging, newStagingPath, sweepStaging } from './staging.ts';

export type WriteOptions = {
  /** Default 0600, whatever the umask. */
  mode?: number;
  /** Keeps the content that is replaced as `<name>.previous`. */
  keepPrevious?: boolean;
  /** False: a directory that has gone does not come back, and the write fails with ENOENT. Default true. */
  makeDirectory?: boolean;
};

/** Content that is on disk, whole and synced, but not yet under its name. */
export type StagedFile = {
  readonly sizeBytes: number;
  /** Renames it over the target. The file is then old or new; after an error, too. */
  publish(options?: { keepPrevious?: boolean }): Promise<void>;
  /** Removes it unless it has been published. Never throws. */
  discard(): Promise<void>;
};

/**
 * Replaces the file's whole content. Makes missing directories. On an error the old file is untouched and nothing is
 * left beside it; only when the last step, the sync of the directory, fails is the new content already in place.
 */
export async function writeFileAtomic(
  path: string,
  body: string | Uint8Array,
  options: WriteOptions = {},
): Promise<void> {
  const staged = await stageFile(path, body, options);
  try {
    await staged.publish({ keepPrevious: options.keepPrevious ?? false });
  } finally {
    await staged.discard();
  }
}

/** Prepares the new content of `path`; the caller publishes or discards it. */
export async function stageFile(
  path: string,
  body: string | Uint8Array,
  { mode = 0o600, makeDirectory = true }: Pick<WriteOptions, 'mode' | 'makeDirectory'> = {},
): Promise<StagedFile> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : toBuffer(body);
  const fill = async (staging: string): Promise<number> => {
    await writeStagingFile(staging, bytes, { mode });
    await requireSameContent(staging, bytes);
    return bytes.length;
  };
  return await stage(path, fill, makeDirectory);
}

/** The same for content of unknown length. An error of the source is thrown as it is. */
export async function stageStream(path: string, source: AsyncIterable<Uint8Array>): Promise<StagedFile> {
  return await stage(path, async (staging) => {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const handle = await open(staging, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      let sizeBytes = 0;
      for await (const chunk of untouchedErrors(source)) {
        for (let done = 0; done < chunk.length; ) {
          const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, sizeBytes);
          if (bytesWritten === 0) throw shortWrite(sizeBytes, sizeBytes + chunk.length - done);
          done += bytesWritten;
          sizeBytes += bytesWritten;
        }
      }
      await handle.sync();
      const { size } = await handle.stat();
      if (size !== sizeBytes) throw shortWrite(size, sizeBytes);
      return sizeBytes;
    } finally {
      await handle.close();
    }
  });
}

async function stage(
  path: string,
  fill: (staging: string) => Promise<number>,
  makeDirectory = true,
): Promise<StagedFile> {
  const directory = dirname(path);
  const staging = newStagingPath(directory);
  keepFileSizeErrors();
  try {
    if (makeDirectory) await ensureDirectory(directory);
    await sweepStaging(directory);
    await requireReplaceable(path);
    const sizeBytes = await fill(staging);
    let published = false;
    return {
      sizeBytes,
      publish: async ({ keepPrevious = false } = {}) => {
        try {
          if (keepPrevious) await keepCurrent(path);
          await rename(staging, path);
          published = true;
          await syncDirectory(directory);
        } catch (error) {
          throw fileError('write', path, error);
        }
      },
      discard: async () => (published ? forgetStaging(staging) : await discardStaging(staging)),
    };
  } catch (error) {
    await discardStaging(staging);
    if (error instanceof SourceError) throw error.cause;
    throw fileError('write', path, error);
  }
}

let guarded = false;

/**
 * Node ignores SIGXFSZ, so that a write beyond a file size limit is an error. write-file-atomic's exit hook takes the
 * signal over and ends the process by it, unless somebody else listens, too.
 */
function keepFileSizeErrors(): void {
  if (guarded) return;
  guarded = true;
  process.on('SIGXFSZ', () => {});
}

/** write-file-atomic follows a symbolic link and rewrites what it points to: for our files that is always a mistake. */
async function requireReplaceable(path: string): Promise<void> {
  const target = await lstat(path).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (target === undefined || target.isFile()) return;
  const kind = target.isSymbolicLink() ? 'a symbolic link' : 'not a regular file';
  throw new ConfigError(`cannot write ${JSON.stringify(path)}: it is ${kind}`, { code: 'not-a-file' });
}

async function requireSameContent(staging: string, bytes: Buffer): Promise<void> {
  const handle = await open(staging, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    if (size !== bytes.length) throw shortWrite(size, bytes.length);
    const written = await handle.readFile();
    if (!written.equals(bytes)) throw codedError('EIO', 'what was written reads back differently');
  } finally {
    await handle.close();
  }
}

/** The cause is nearly always a full disk, a quota or a file size limit; the kernel tells only on the next write. */
function shortWrite(sizeBytes: number, wantedBytes: number): Error {
  return codedError('ENOSPC', `only ${sizeBytes} of ${wantedBytes} bytes could be written`);
}

function codedError(code: string, text: string): Error {
  return Object.assign(new Error(`${code}: ${text}`), { code });
}

/**
 * Puts the current content under `<name>.previous` as well. A plainly damaged file (empty, cut, or NULs where a power
 * cut met an unsynced rename) must not push out a good copy. Files kept this way end with a line break.
 */
async function keepCurrent(path: string): Promise<void> {
  if (!(await looksWhole(path))) return;
  const second = newStagingPath(dirname(path));
  try {
    await linkOrCopy(path, second);
    await rename(second, previousPath(path));
  } finally {
    // Needed after success, too: rename(2) does nothing when both names are links to the same file.
    await discardStaging(second);
  }
}

export function previousPath(path: string): string {
  return join(dirname(path), `${basename(path)}.previous`);
}

const noHardLinks = new Set(['EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EXDEV']);

/** As many writers as may replace the file while we try to link it. */
const mostReplacements = 20;

async function linkOrCopy(path: string, second: string, tries = mostReplacements): Promise<void> {
  try {
    await link(path, second);
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    // link(2) has looked the file up, and meanwhile another writer's rename has taken its last name away.
    if (code === 'ENOENT' && tries > 1) return await linkOrCopy(path, second, tries - 1);
    if (!noHardLinks.has(code)) throw error;
    await copyFile(path, second, constants.COPYFILE_EXCL);
  }
}

async function looksWhole(path: string): Promise<boolean> {
  const { O_RDONLY, O_NOFOLLOW } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (handle === undefined) return false;
  try {
    const { size } = await handle.stat();
    if (size === 0) return false;
    const ends = Buffer.alloc(2);
    await handle.read(ends, 0, 1, 0);
    await handle.read(ends, 1, 1, size - 1);
    return ends[0] !== 0 && ends[1] === 0x0a;
  } finally {
    await handle.close();
  }
}

/** Carries an error of the caller's own source past the wording of file errors. */
class SourceError extends Error {}

async function* untouchedErrors(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of source) yield chunk;
  } catch (error) {
    throw new SourceError('source', { cause: error });
  }
}

function toBuffer(body: Uint8Array): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}
