// Versioned JSON documents of the state directory. Missing means first run, unreadable is an error, damaged means set
// aside and taken from the previous copy. Damaged never means empty.
import { constants } from 'node:fs';
import { open, rename, stat, unlink } from 'node:fs/promises';
import { ConfigError, InputError, systemErrorCode } from '../errors.ts';
import type { Log } from '../report/log.ts';
import { fileStamp } from '../time.ts';
import { previousPath, writeFileAtomic } from './atomic-file.ts';
import { fileError } from './file-error.ts';

type RawDocument = Readonly<Record<string, unknown>>;

export type DocumentDefinition<T extends object> = {
  /** Written as `version`; a whole number from 1. */
  readonly version: number;
  /** The value out of a document of this version. Throws, with the reason as message, where the shape is wrong. */
  parse(raw: RawDocument): T;
  /** Brings an older version's document into this version's shape. Without it older versions count as wrong shape. */
  migrate?(raw: RawDocument, version: number): RawDocument;
  /** It lies in a directory that goes with it, and that no write makes again. */
  readonly needsDirectory?: true;
  /** Written without line breaks: it may come near to what can be read. */
  readonly isCompact?: true;
};

export type ReadResult<T> =
  | { kind: 'missing' }
  | { kind: 'ok'; value: T }
  /** The document was damaged or gone; `value` is the previous copy's. */
  | { kind: 'recovered'; value: T; reason: string; setAside: string | undefined }
  /** Damaged, and no previous copy is of use: rebuild from what the world shows, never assume emptiness. */
  | { kind: 'lost'; reason: string; setAside: string | undefined };

export type ReadOptions = {
  now: Date;
  log: Log;
  /** Only the owner, under its lock, moves a damaged file aside. Read-only commands say false. */
  repair?: boolean;
};

/** No document of ours comes near this size; more is damage. */
const maxDocumentBytes = 16 * 1024 * 1024;

export function defineDocument<T extends object>(definition: DocumentDefinition<T>): DocumentDefinition<T> {
  return definition;
}

/** Throws ConfigError or StepError when the file cannot be read, InputError when a newer reeve has written it. */
export async function readDocument<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
  options: ReadOptions,
): Promise<ReadResult<T>> {
  const current = await readOne(path, definition);
  if (current.kind === 'ok') return { kind: 'ok', value: current.value };
  const previous = await readOne(previousPath(path), definition);
  if (current.kind === 'missing' && previous.kind === 'missing') return { kind: 'missing' };
  const setAside = current.kind === 'damaged' ? await setFileAside(path, current, options) : undefined;
  const reason =
    current.kind === 'damaged' ? current.reason : 'it is missing, but its previous copy is there';
  const fields = setAside === undefined ? { path } : { path, setAside };
  if (previous.kind === 'ok') {
    options.log.warning(`state file taken from its previous copy: ${reason}`, fields);
    return { kind: 'recovered', value: previous.value, reason, setAside };
  }
  options.log.warning(`state file lost: ${reason}; no previous copy can be used`, fields);
  return { kind: 'lost', reason, setAside };
}

/** Replaces the document and keeps the one it replaces as the previous copy. Throws InputError where it could not be read again. */
export async function writeDocument<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
  value: T,
): Promise<void> {
  const makeDirectory = definition.needsDirectory !== true;
  const text = renderStateDocument(definition, value);
  requireReadable(path, text);
  await writeFileAtomic(path, text, { keepPrevious: true, makeDirectory });
}

/** Writes only what differs from the file, so that an idle tick writes nothing. True if it has written. */
export async function writeDocumentIfChanged<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
  value: T,
): Promise<boolean> {
  const text = renderStateDocument(definition, value);
  requireReadable(path, text);
  const current = await readBytes(path);
  if (current?.bytes?.equals(Buffer.from(text))) return false;
  await writeFileAtomic(path, text, { keepPrevious: true });
  return true;
}

/** Removes a document for good. The previous copy goes first: alone it would be taken for the document of a lost one. */
export async function removeDocument(path: string): Promise<void> {
  for (const name of [previousPath(path), path]) {
    await unlink(name).catch((error: unknown) => {
      if (systemErrorCode(error) !== 'ENOENT') throw fileError('remove', name, error);
    });
  }
}

function requireReadable(path: string, text: string): void {
  if (Buffer.byteLength(text) <= maxDocumentBytes) return;
  throw new InputError(
    `cannot write ${JSON.stringify(path)}: it would be larger than ${maxDocumentBytes} bytes`,
    { code: 'too-large' },
  );
}

export function renderStateDocument<T extends object>(definition: DocumentDefinition<T>, value: T): string {
  const indent = definition.isCompact === true ? 0 : 2;
  return `${JSON.stringify({ version: definition.version, ...value }, null, indent)}\n`;
}

type OneResult<T> =
  | { kind: 'missing' }
  | { kind: 'ok'; value: T }
  | { kind: 'damaged'; reason: string; inode: bigint };

async function readOne<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
): Promise<OneResult<T>> {
  const file = await readBytes(path);
  if (file === undefined) return { kind: 'missing' };
  try {
    return { kind: 'ok', value: parseDocument(path, file.bytes, definition) };
  } catch (error) {
    if (error instanceof InputError) throw error;
    return {
      kind: 'damaged',
      reason: error instanceof Error ? error.message : String(error),
      inode: file.inode,
    };
  }
}

/** Throws InputError for a newer version, any other error for damage. */
function parseDocument<T extends object>(
  path: string,
  bytes: Buffer | undefined,
  definition: DocumentDefinition<T>,
): T {
  if (bytes === undefined) throw new Error(`it is larger than ${maxDocumentBytes} bytes`);
  if (bytes.length === 0) throw new Error('it is empty');
  if (bytes.includes(0)) throw new Error('it contains NUL bytes');
  const raw = requireObject(parseJson(bytes));
  const version = raw['version'];
  if (!Number.isInteger(version)) throw new Error('it has no version');
  const found = version as number;
  if (found > definition.version) {
    throw new InputError(
      `cannot read ${JSON.stringify(path)}: it is version ${found}, this reeve knows versions up to ${definition.version}`,
      { code: 'newer-version' },
    );
  }
  if (found === definition.version) return definition.parse(raw);
  if (definition.migrate === undefined) throw new Error(`it has the unknown version ${found}`);
  return definition.parse(definition.migrate(raw, found));
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Error('it is not whole JSON');
  }
}

function requireObject(value: unknown): RawDocument {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RawDocument;
  throw new Error('it is not a JSON object');
}

/** Undefined where there is no file; `bytes` is undefined where it is too large to be one of ours. */
async function readBytes(path: string): Promise<{ bytes: Buffer | undefined; inode: bigint } | undefined> {
  // O_NONBLOCK: a pipe under the name of a state file must not hang the tick.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    const handle = await open(path, flags);
    try {
      const about = await handle.stat({ bigint: true });
      if (!about.isFile()) {
        throw new ConfigError(`cannot read ${JSON.stringify(path)}: it is not a regular file`, {
          code: about.isDirectory() ? 'EISDIR' : 'not-a-file',
        });
      }
      const bytes = about.size > maxDocumentBytes ? undefined : await handle.readFile();
      return { bytes, inode: about.ino };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  }
}

/** Renames the file that was read, and no other: by now somebody may have put a good one there. */
async function setFileAside(
  path: string,
  damaged: { inode: bigint },
  options: ReadOptions,
): Promise<string | undefined> {
  if (options.repair === false) return undefined;
  const setAside = `${path}.corrupt-${fileStamp(options.now)}`;
  try {
    const { ino } = await stat(path, { bigint: true });
    if (ino !== damaged.inode) return undefined;
    await rename(path, setAside);
    return setAside;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw fileError('set aside', path, error);
  }
}
