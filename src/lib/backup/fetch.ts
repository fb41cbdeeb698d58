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

/** The encoding that a dump says it is in. */
export async function readEncoding(path: string): Promise<string | undefined> {
  let head = '';
  for await (const chunk of readText(path)) {
    head += Buffer.from(chunk).toString('latin1');
    if (head.length > 4096) break;
  }
  return /^SET client_encoding = '(\w+)';$/m.exec(head)?.[1];
}

/**
 * Throws BrokenError where the text does not end as a dump does: launch-pad's are compressed by another program, so that a stream
 * that is whole may be half a dump. Newer dumps have lines behind the one that says so.
 */
export async function requireDumpEnd(path: string): Promise<void> {
  let tail = Buffer.alloc(0);
  for await (const chunk of readText(path))
    tail = Buffer.concat([tail, chunk.subarray(-1024)]).subarray(-1024);
  if (/^-- PostgreSQL database dump complete$/m.test(tail.toString('latin1'))) return;
  throw new BrokenError('it ends before the dump does');
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
