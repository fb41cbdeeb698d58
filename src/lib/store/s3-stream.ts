// Large objects. Up goes one in parts, of which nothing can be seen until they are put together; down it comes as it is read.
// A deadline for the whole would be a guess, so that each silence has one.
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { toCloudError } from '../aws/failures.ts';
import { UnavailableError } from '../errors.ts';
import { confirmAbsence } from './s3-absence.ts';
import { type Bucket, buildS3Client, describeAction, explainBucket } from './s3-client.ts';
import { contentTypeOf } from './s3-object.ts';
import type { StoredEntry } from './store.ts';

/** 10,000 parts are the most that S3 puts together: an object may have 97 GB, and 20 MB of it are in memory. */
const partBytes = 10 * 1024 * 1024;
const parallelParts = 2;

/** Uploads that nobody has ended by then are those of runs that were killed. Their parts are paid for. */
const staleMs = 24 * 60 * 60 * 1000;

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
  const { Upload } = await import('@aws-sdk/lib-storage');
  const watched = watchSource(source, bucket.signal);
  const upload = new Upload({
    client: bucket.client,
    params: {
      ...{ Bucket: bucket.name, Key: `${bucket.prefix}${key}`, Body: Readable.from(watched.chunks) },
      ContentType: contentTypeOf(key),
    },
    partSize: partBytes,
    queueSize: parallelParts,
  });
  const swept = endStaleUploads(bucket, key);
  try {
    await upload.done();
  } catch (error) {
    // The source's own error is the caller's, who knows it by sight.
    throw watched.failure() ?? explain(bucket, error, 'write', key);
  } finally {
    await swept;
  }
}

/** The upload ends its parts only where its source fails, so that an interruption comes to it that way, too. */
function watchSource(source: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  let failure: { error: unknown } | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of source) {
        if (signal?.aborted === true) {
          throw new UnavailableError('cannot write to the store: interrupted', { code: 'INTERRUPTED' });
        }
        if (chunk.length > 0) yield chunk;
      }
    } catch (error) {
      failure = { error };
      throw error;
    }
  }
  return { chunks: chunks(), failure: () => failure?.error };
}

/** Of earlier runs, in the directory of the key. It is housekeeping: a service that does not let it be done is left alone. */
async function endStaleUploads({ client, name, prefix }: Bucket, key: string): Promise<void> {
  const directory = `${prefix}${dirname(key)}/`.replace(/(^|\/)\.\/$/, '$1');
  try {
    const { Uploads: uploads = [] } = await client.send(
      new ListMultipartUploadsCommand({ Bucket: name, Prefix: directory }),
    );
    const oldest = Date.now() - staleMs;
    const stale = uploads.filter(({ Initiated: startedAt }) => (startedAt?.getTime() ?? oldest) < oldest);
    for (const { Key, UploadId } of stale) {
      await client.send(new AbortMultipartUploadCommand({ Bucket: name, Key, UploadId }));
    }
  } catch {
    // See above.
  }
}

async function getStream(bucket: Bucket, key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const { client, name, prefix, signal } = bucket;
  const options = { ...(signal === undefined ? {} : { abortSignal: signal }) };
  try {
    const found = await confirmAbsence(bucket, key, options, () =>
      client.send(new GetObjectCommand({ Bucket: name, Key: `${prefix}${key}` }), options),
    );
    return found && readChunks(bucket, key, found.Body as Readable);
  } catch (error) {
    throw explain(bucket, error, 'read', key);
  }
}

async function* readChunks(bucket: Bucket, key: string, body: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw explain(bucket, error, 'read', key);
  }
}

function explain(bucket: Bucket, error: unknown, verb: string, key: string): Error {
  const action = describeAction(bucket, verb, key);
  return explainBucket(bucket, error, action) ?? toCloudError(error, action);
}
