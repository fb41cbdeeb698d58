// A dump on its way into a file, checked while it comes: hashed as it is, and decompressed to its end. The dump's own end is
// thrown where it is a failure, so that what is captured is whole, or there is nothing.
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { StepError } from '../../errors.ts';
import { createCollector } from './memory.ts';
import { writeNewFile } from './temp.ts';

export type Captured = {
  path: string;
  /** Compressed. */
  sizeBytes: number;
  /** Of the compressed bytes. */
  sha256: string;
  /** Decompressed. */
  rawBytes: number;
};

/** Throws StepError (`empty`, `cut`) for what is no whole dump, and what the stream throws. The file is the caller's to remove. */
export async function captureDump(path: string, chunks: AsyncIterable<Uint8Array>): Promise<Captured> {
  let inspected: Inspected | undefined;
  await writeNewFile(path, async (append) => {
    inspected = await inspectDump(chunks, append);
  });
  return { path, ...(inspected as Inspected) };
}

export type Inspected = Omit<Captured, 'path'>;

/** Reads it to its end. `take` is given each chunk as it comes. Throws as `captureDump`. */
export async function inspectDump(
  chunks: AsyncIterable<Uint8Array>,
  take: (chunk: Uint8Array) => Promise<void> = async () => {},
): Promise<Inspected> {
  const hash = createHash('sha256');
  const reader = createGzipReader();
  let sizeBytes = 0;
  try {
    for await (const chunk of chunks) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      await Promise.all([take(chunk), reader.push(chunk)]);
    }
    if (sizeBytes === 0) throw new StepError('the dump is empty: it has no bytes', { code: 'empty' });
    await reader.end();
  } finally {
    reader.destroy();
  }
  if (reader.readBytes() !== sizeBytes)
    throw new StepError('the dump has bytes behind its end', { code: 'cut' });
  if (reader.rawBytes() === 0) throw new StepError('the dump is empty: nothing is in it', { code: 'empty' });
  return { sizeBytes, sha256: hash.digest('hex'), rawBytes: reader.rawBytes() };
}

/** Text as a stream of gzip. */
export async function* compress(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gzip = createGzip({ level: 6 });
  // What it fails with is what the reader is thrown. A reader that stops early does not wait for the source.
  pipeline(chunks, gzip).catch(() => {});
  try {
    for await (const chunk of gzip) yield chunk as Uint8Array;
  } finally {
    gzip.destroy();
  }
}

type GzipReader = {
  push(chunk: Uint8Array): Promise<void>;
  /** Rejects unless the stream was whole. */
  end(): Promise<void>;
  rawBytes(): number;
  /** How many of the compressed bytes it has made use of. */
  readBytes(): number;
  destroy(): void;
};

function createGzipReader(): GzipReader {
  const gunzip = createGunzip({ chunkSize: 64 * 1024 });
  let rawBytes = 0;
  const collect = createCollector();
  gunzip.on('data', (chunk: Buffer) => {
    rawBytes += chunk.length;
    collect(chunk.length);
  });
  const ended = new Promise<void>((resolve, reject) => {
    gunzip.once('end', resolve);
    gunzip.once('error', (error) =>
      reject(new StepError(`the dump is cut or damaged: ${error.message}`, { code: 'cut', cause: error })),
    );
  });
  let isOver = false;
  let wake = (): void => {};
  const settle = (): void => {
    isOver = true;
    wake();
  };
  ended.then(settle, settle);
  gunzip.on('drain', () => wake());
  return {
    push: async (chunk) => {
      // No race with `ended`, which would keep something of every chunk until the end of a dump.
      if (!isOver && !gunzip.write(chunk)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      if (isOver) await ended;
    },
    end: async () => {
      gunzip.end();
      await ended;
    },
    rawBytes: () => rawBytes,
    readBytes: () => gunzip.bytesWritten,
    destroy: () => gunzip.destroy(),
  };
}
