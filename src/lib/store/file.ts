// The store in a directory: keys are paths below it. Writers prepare their content beside the target, then compare and
// rename under one kernel lock, so that conditional writes are true among processes; readers take no lock.
import type { BigIntStats } from 'node:fs';
import { constants } from 'node:fs';
import { type FileHandle, open, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ReeveError, systemErrorCode, UnavailableError } from '../errors.ts';
import { type StagedFile, stageFile, stageStream } from '../state/atomic-file.ts';
import { syncDirectory } from '../state/directory.ts';
import { describeCause, fileError } from '../state/file-error.ts';
import { etagOf, readEtag } from './file-etag.ts';
import { listFileKeys } from './file-list.ts';
import { createStoreLock, type StoreLock } from './file-lock.ts';
import { requireKey, requirePrefix } from './key.ts';
import {
  PreconditionError,
  type PutCondition,
  type Store,
  type StoredDocument,
  type StoredEntry,
} from './store.ts';
import { decodeText, requireDocumentSize } from './text.ts';

type Files = { root: string; lock: StoreLock; setting: string; signal: AbortSignal | undefined };

/** `setting`: what names the directory, for whoever finds it missing. */
export type FileStoreOptions = { signal?: AbortSignal; setting?: string };

/** The directory must exist when it is used: a store that is not mounted must not look like an empty one. */
export function openFileStore(directory: string, options: FileStoreOptions = {}): Store {
  const root = resolve(directory);
  const { signal, setting = 'cluster.store' } = options;
  const files: Files = { root, lock: createStoreLock(root, signal), setting, signal };
  return {
    url: pathToFileURL(root).href,
    get: (key) => getDocument(files, key),
    put: (key, body, condition) => putDocument(files, key, body, condition),
    list: (prefix) => listEntries(files, prefix),
    delete: (key) => deleteKey(files, key),
    head: (key) => headKey(files, key),
    putStream: (key, source) => putObject(files, key, source),
    getStream: (key) => getObject(files, key),
  };
}

async function getDocument(files: Files, key: string): Promise<StoredDocument | undefined> {
  return await readKey(files, key, async (handle, about) => {
    requireDocumentSize(Number(about.size), key);
    const bytes = await handle.readFile();
    return { text: decodeText(bytes, key), etag: etagOf(bytes, about), updatedAt: about.mtime };
  });
}

async function putDocument(
  files: Files,
  key: string,
  body: string | Uint8Array,
  condition: PutCondition | undefined,
): Promise<{ etag: string }> {
  const path = await requirePlace(files, key);
  const staged = await stageFile(path, body);
  const { etag } = await publish(files, key, staged, condition);
  return { etag };
}

async function putObject(files: Files, key: string, source: AsyncIterable<Uint8Array>): Promise<StoredEntry> {
  const path = await requirePlace(files, key);
  const staged = await stageStream(path, source);
  return await publish(files, key, staged, undefined);
}

async function publish(
  files: Files,
  key: string,
  staged: StagedFile,
  condition: PutCondition | undefined,
): Promise<StoredEntry> {
  try {
    return await files.lock.run(async () => {
      if (condition !== undefined) await requireCondition(files, key, condition);
      await staged.publish();
      // Read back under the lock: the tag of a large object names this very write.
      const entry = await headKey(files, key);
      if (entry === undefined)
        throw new UnavailableError(`cannot write ${JSON.stringify(key)}: it has vanished`);
      return entry;
    });
  } finally {
    await staged.discard();
  }
}

async function requireCondition(files: Files, key: string, condition: PutCondition): Promise<void> {
  const current = await headKey(files, key);
  const holds = 'ifAbsent' in condition ? current === undefined : current?.etag === condition.ifMatch;
  if (!holds) throw new PreconditionError(key);
}

async function listEntries(files: Files, prefix: string): Promise<StoredEntry[]> {
  requirePrefix(prefix);
  await requireRoot(files);
  try {
    const entries: StoredEntry[] = [];
    for (const key of await listFileKeys(files.root, prefix)) {
      const entry = await headKey(files, key);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  } catch (error) {
    throw unavailable('list', prefix, files, error);
  }
}

async function deleteKey(files: Files, key: string): Promise<void> {
  const path = await requirePlace(files, key);
  await files.lock.run(async () => {
    try {
      await unlink(path);
      await syncDirectory(dirname(path));
    } catch (error) {
      if (!isAbsence(error)) throw fileError('delete', path, error);
    }
  });
}

async function headKey(files: Files, key: string): Promise<StoredEntry | undefined> {
  return await readKey(files, key, async (handle, about) => ({
    key,
    etag: await readEtag(handle, about),
    sizeBytes: Number(about.size),
    updatedAt: about.mtime,
  }));
}

async function getObject(files: Files, key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const handle = await openKey(files, key);
  return handle && readChunks(files, key, handle);
}

/** A dump may take longer to read than whoever is told to stop has left. */
async function* readChunks(
  { root, signal }: Files,
  key: string,
  handle: FileHandle,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of handle.createReadStream({ highWaterMark: 256 * 1024 })) {
    if (signal?.aborted === true) {
      const action = `read ${JSON.stringify(key)} in store ${JSON.stringify(root)}`;
      throw new UnavailableError(`cannot ${action}: interrupted`, { code: 'INTERRUPTED' });
    }
    yield chunk as Uint8Array;
  }
}

async function readKey<T>(
  files: Files,
  key: string,
  read: (handle: FileHandle, about: BigIntStats) => Promise<T>,
): Promise<T | undefined> {
  const handle = await openKey(files, key);
  if (handle === undefined) return undefined;
  try {
    return await read(handle, await handle.stat({ bigint: true }));
  } catch (error) {
    throw unavailable('read', key, files, error);
  } finally {
    await handle.close();
  }
}

/** Undefined where the store is there but nothing is under the key. */
async function openKey(files: Files, key: string): Promise<FileHandle | undefined> {
  requireKey(key);
  try {
    return await openRegularFile(join(files.root, key));
  } catch (error) {
    if (!isAbsence(error)) throw unavailable('read', key, files, error);
    await requireRoot(files);
    return undefined;
  }
}

async function openRegularFile(path: string): Promise<FileHandle | undefined> {
  // O_NONBLOCK: a pipe that somebody has put there must not hang us.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const isRegular = await handle.stat().then(
    (about) => about.isFile(),
    () => false,
  );
  if (isRegular) return handle;
  await handle.close();
  return undefined;
}

async function requirePlace(files: Files, key: string): Promise<string> {
  requireKey(key);
  await requireRoot(files);
  return join(files.root, key);
}

async function requireRoot(files: Files): Promise<void> {
  const about = await stat(files.root).catch((error: unknown) => {
    const cause = isAbsence(error)
      ? `there is no such directory: is it mounted? (${files.setting})`
      : describeCause(error);
    throw new UnavailableError(`cannot use store ${JSON.stringify(files.root)}: ${cause}`, {
      cause: error,
      code: systemErrorCode(error) ?? 'store',
    });
  });
  if (!about.isDirectory()) {
    throw new UnavailableError(`cannot use store ${JSON.stringify(files.root)}: it is not a directory`);
  }
}

function isAbsence(error: unknown): boolean {
  const code = systemErrorCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function unavailable(verb: string, key: string, files: Files, error: unknown): Error {
  if (error instanceof ReeveError) return error;
  const subject = `${JSON.stringify(key)} in store ${JSON.stringify(files.root)}`;
  return new UnavailableError(`cannot ${verb} ${subject}: ${describeCause(error)}`, {
    cause: error,
    code: systemErrorCode(error) ?? 'store',
  });
}
