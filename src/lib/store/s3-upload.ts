// A large object on its way up, in parts. Whatever ends it ends all of it: the requests under way, the reading of the source and
// the parts that are there already.
import { Readable } from 'node:stream';
import { AbortMultipartUploadCommand, type S3Client } from '@aws-sdk/client-s3';
import { waitUntil } from '../abort.ts';
import { toCloudError } from '../aws/failures.ts';
import { UnavailableError } from '../errors.ts';
import { type Bucket, describeAction, explainBucket } from './s3-client.ts';
import { contentTypeOf } from './s3-object.ts';

/** 10,000 parts are the most that S3 puts together: an object may have 97 GB, and 20 MB of it are in memory. */
const partBytes = 10 * 1024 * 1024;
const parallelParts = 2;

/** For the request that ends the parts of an upload that has failed. */
const endMs = 5_000;

/** Throws the source's own error as it is: the caller knows it by sight. */
export async function uploadStream(
  bucket: Bucket,
  key: string,
  source: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { Upload } = await import('@aws-sdk/lib-storage');
  const end = new AbortController();
  const interrupt = (): void => end.abort(bucket.signal?.reason);
  bucket.signal?.addEventListener('abort', interrupt);
  if (bucket.signal?.aborted === true) interrupt();
  const watched = watchSource(source, end.signal);
  const body = Readable.from(watched.chunks);
  const upload = new Upload({
    client: buildUploadClient(bucket.client, end),
    params: {
      ...{ Bucket: bucket.name, Key: `${bucket.prefix}${key}`, Body: body },
      ContentType: contentTypeOf(key),
    },
    partSize: partBytes,
    queueSize: parallelParts,
  });
  try {
    await upload.done();
  } catch (error) {
    throw watched.failure() ?? (await explainStream(bucket, end.signal.reason ?? error, 'write', key));
  } finally {
    bucket.signal?.removeEventListener('abort', interrupt);
    body.destroy();
  }
}

/**
 * The upload knows no signal for the requests that it sends, and reads on where one of them has failed. Its last one, which
 * ends the parts, is sent all the same, and its failure does not hide why there was an end: the sweep has a look a day later.
 */
function buildUploadClient(client: S3Client, end: AbortController): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]): Promise<unknown> => {
    const sendUntil = async (abortSignal: AbortSignal): Promise<unknown> =>
      await waitUntil(abortSignal, () => client.send(command, { abortSignal }));
    if (command instanceof AbortMultipartUploadCommand) {
      return await sendUntil(AbortSignal.timeout(endMs)).catch(() => undefined);
    }
    return await sendUntil(end.signal).catch((error: unknown) => {
      end.abort(error);
      throw error;
    });
  };
  return Object.create(client, { send: { value: send } }) as S3Client;
}

/** The upload ends its parts only where its source fails or a request does: so an end comes to it that way, too. */
function watchSource(source: AsyncIterable<Uint8Array>, end: AbortSignal) {
  let failure: { error: unknown } | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    const iterator = source[Symbol.asyncIterator]();
    const read = () =>
      iterator.next().catch((error: unknown) => {
        // After the end it fails because nobody reads it any more, which is not why there was an end.
        if (!end.aborted) failure ??= { error };
        throw error;
      });
    let isOver = false;
    try {
      for (let next = await waitUntil(end, read); next.done !== true; next = await waitUntil(end, read)) {
        if (next.value.length > 0) yield next.value;
      }
      isOver = true;
    } finally {
      // One that is stuck would not come to an end before it gives something.
      if (!isOver) void Promise.resolve(iterator.return?.()).catch(() => undefined);
    }
  }
  return { chunks: chunks(), failure: () => failure?.error };
}

/** A failure of a large object's way, as the store's users know it. */
export async function explainStream(
  bucket: Bucket,
  error: unknown,
  verb: string,
  key: string,
): Promise<Error> {
  const action = describeAction(bucket, verb, key);
  if (bucket.signal?.aborted === true) {
    return new UnavailableError(`cannot ${action}: interrupted`, { code: 'INTERRUPTED', cause: error });
  }
  return (await explainBucket(bucket, error, action)) ?? toCloudError(error, action);
}
