// A backup's object out of its store: read to its end, and held against what its manifest says of it.
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { StepError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { captureDump, type Inspected, inspectDump } from './dump/capture.ts';

/** What its manifest says; undefined for a dump without one. */
export type Expected = { sizeBytes: number; sha256: string } | undefined;

/** What is wrong with the object itself, not with the way to it. */
export class BrokenError extends StepError {
  constructor(reason: string, cause?: unknown) {
    super(reason, { code: 'broken', cause });
  }
}

/** Throws BrokenError for what is no whole dump, or another one; what the store throws otherwise. */
export async function checkObject(store: Store, key: string, expected: Expected): Promise<Inspected> {
  return await inspect(store, key, expected, (chunks) => inspectDump(chunks));
}

/** The same, into a file that is the caller's to remove. */
export async function fetchObject(
  store: Store,
  key: string,
  { path, expected }: { path: string; expected: Expected },
): Promise<Inspected> {
  return await inspect(store, key, expected, (chunks) => captureDump(path, chunks));
}

async function inspect(
  store: Store,
  key: string,
  expected: Expected,
  read: (chunks: AsyncIterable<Uint8Array>) => Promise<Inspected>,
): Promise<Inspected> {
  const chunks = await store.getStream(key);
  if (chunks === undefined) throw new BrokenError('it is not there');
  const inspected = await read(chunks).catch((error: unknown) => {
    const isDumps = error instanceof StepError && ['empty', 'cut'].includes(error.code);
    throw isDumps ? new BrokenError(error.message, error) : error;
  });
  if (expected === undefined) return inspected;
  if (inspected.sizeBytes !== expected.sizeBytes) {
    throw new BrokenError(`it has ${inspected.sizeBytes} bytes, and ${expected.sizeBytes} were written`);
  }
  if (inspected.sha256 !== expected.sha256) {
    throw new BrokenError('it is not what was written: its sha256 is another one');
  }
  return inspected;
}

/** The text of a fetched dump. */
export async function* readText(path: string): AsyncGenerator<Uint8Array> {
  const source = createReadStream(path, { highWaterMark: 256 * 1024 });
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  source.once('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

const beginningBytes = 4096;
const endBytes = 1024;

/** The first kilobytes of a fetched dump's text, byte for character. */
export async function readBeginning(path: string): Promise<string> {
  let text = '';
  for await (const chunk of readText(path)) {
    text += Buffer.from(chunk.subarray(0, beginningBytes)).toString('latin1');
    if (text.length >= beginningBytes) break;
  }
  return text;
}

/** Its last kilobyte, byte for character. */
export async function readEnd(path: string, signal: AbortSignal): Promise<string> {
  let end = Buffer.alloc(0);
  for await (const chunk of readText(path)) {
    signal.throwIfAborted();
    end = Buffer.concat([end, chunk.subarray(-endBytes)]).subarray(-endBytes);
  }
  return end.toString('latin1');
}

/** Globals are small; more than this is none. */
const maxGlobalsBytes = 64 * 1024 * 1024;

/** Throws BrokenError. */
export async function readGlobals(path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readText(path)) {
    size += chunk.length;
    if (size > maxGlobalsBytes) throw new BrokenError(`it has more than ${maxGlobalsBytes} bytes of roles`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
