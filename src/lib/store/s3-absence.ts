// Whether there is nothing under a key. A service does not always say so: whoever may not list a whole bucket is refused what
// is not there, and an answer without a body does not tell a missing object from a missing bucket.
import { HeadBucketCommand, ListObjectsV2Command, NoSuchBucket } from '@aws-sdk/client-s3';
import { statusOf } from '../aws/failures.ts';
import type { Bucket, CallOptions } from './s3-client.ts';

/** What `read` gives, or undefined where nothing is under the key. */
export async function confirmAbsence<Found>(
  bucket: Bucket,
  key: string,
  options: CallOptions,
  read: () => Promise<Found>,
): Promise<Found | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'NoSuchKey' || error.name === 'NotFound') return undefined;
    if (statusOf(error) === 403 && (await isAbsent(bucket, key, options))) return undefined;
    throw error;
  }
}

/** A node may list what lies below its own prefix, if nothing else. */
async function isAbsent(
  { client, name, prefix }: Bucket,
  key: string,
  options: CallOptions,
): Promise<boolean> {
  const full = `${prefix}${key}`;
  try {
    // What begins with the key sorts behind the key itself.
    const page = await client.send(
      new ListObjectsV2Command({ Bucket: name, Prefix: full, MaxKeys: 1 }),
      options,
    );
    return page.Contents?.[0]?.Key !== full;
  } catch {
    // The first refusal is the one to tell.
    return false;
  }
}

/** Throws where it is the bucket that is not there. */
export async function requireBucket({ client, name }: Bucket, options: CallOptions): Promise<void> {
  try {
    await client.send(new HeadBucketCommand({ Bucket: name }), options);
  } catch (error) {
    if (statusOf(error) !== 404) return;
    const message = 'The specified bucket does not exist';
    throw new NoSuchBucket({ message, $metadata: { httpStatusCode: 404 } });
  }
}
