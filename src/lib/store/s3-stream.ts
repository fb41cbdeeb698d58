// Large objects. Up goes one in parts, of which nothing can be seen until they are put together; down it comes as it is read.
// A deadline for the whole would be a guess, so that each silence has one.
import type { Readable } from 'node:stream';
import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { waitUntil } from '../abort.ts';
import { UnavailableError } from '../errors.ts';
import { confirmAbsence } from './s3-absence.ts';
import { type Bucket, buildS3Client, describeAction } from './s3-client.ts';
import { endStaleUploads } from './s3-sweep.ts';
import { explainStream, uploadStream } from './s3-upload.ts';
import type { StoredEntry } from './store.ts';

export type Streams = {
  put(key: string, source: AsyncIterable<Uint8Array>): Promise<StoredEntry>;
  get(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
};

export function createStreams(
  bucket: Bucket,
  head: (key: string) => Promise<StoredEntry | undefined>,
): Streams {
  let client: S3Client | undefined;
  const open = (): Bucket => {
    client ??= buildS3Client(bucket.place, bucket.limits, 'streams');
    return { ...bucket, client };
  };
  return {
    put: async (key, source) => {
      await putStream(open(), key, source);
      const entry = await head(key);
      if (entry !== undefined) return entry;
      throw new UnavailableError(`cannot ${describeAction(bucket, 'write', key)}: it has vanished`);
    },
    get: (key) => getStream(open(), key),
  };
}

async function putStream(bucket: Bucket, key: string, source: AsyncIterable<Uint8Array>): Promise<void> {
  const swept = endStaleUploads(bucket, key);
  try {
    await uploadStream(bucket, key, source);
  } finally {
    await swept;
  }
}

async function getStream(bucket: Bucket, key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const { client, name, prefix, signal } = bucket;
  const options = { ...(signal === undefined ? {} : { abortSignal: signal }) };
  try {
    const ask = () =>
      confirmAbsence(bucket, key, options, () =>
        client.send(new GetObjectCommand({ Bucket: name, Key: `${prefix}${key}` }), options),
      );
    const found = await (signal === undefined ? ask() : waitUntil(signal, ask));
    return found && readChunks(bucket, key, found.Body as Readable);
  } catch (error) {
    throw await explainStream(bucket, error, 'read', key);
  }
}

async function* readChunks(bucket: Bucket, key: string, body: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw await explainStream(bucket, error, 'read', key);
  }
}
