// Whether there is nothing under a key. A service does not always say so: whoever may not list a whole bucket is refused what
// is not there, an answer without a body does not tell a missing object from a missing bucket, and a proxy in between has pages
// of its own with the same status. What does not name the key as missing is not believed before a list has confirmed it.
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { statusOf } from '../aws/failures.ts';
import { askedFor } from '../aws/origins.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { type Bucket, type CallOptions, describeAction } from './s3-client.ts';
import { requireListing } from './s3-list.ts';

/** What `read` gives, or undefined where nothing is under the key. Throws UnavailableError where nothing tells. */
export async function confirmAbsence<Found>(
  bucket: Bucket,
  key: string,
  options: CallOptions,
  read: () => Promise<Found>,
): Promise<Found | undefined> {
  try {
    return await read();
  } catch (error) {
    const doubt = describeDoubt(error);
    if (doubt === 'missing') return undefined;
    if (doubt === 'none') throw error;
    const found = await lookFor(bucket, key, options);
    if (found === 'absent') return undefined;
    if (doubt === 'refused') throw error;
    if (found instanceof Error && found.name === 'NoSuchBucket') throw found;
    throw unconfirmed(describeAction(bucket, 'read', key), error, found);
  }
}

function unconfirmed(action: string, error: unknown, found: 'present' | Error): UnavailableError {
  const list = found === 'present' ? 'does not say so' : `cannot be had: ${describeError(found)}`;
  return new UnavailableError(
    `cannot ${action}: ${askedFor(error)?.origin} answers 404, but the list of the bucket ${list}`,
    { cause: error, code: 'absence' },
  );
}

function describeDoubt(error: unknown): 'missing' | 'refused' | 'unnamed' | 'none' {
  if (!(error instanceof Error) || error.name === 'NoSuchBucket') return 'none';
  if (error.name === 'NoSuchKey') return 'missing';
  const status = statusOf(error);
  if (status === 404) return 'unnamed';
  return status === 403 ? 'refused' : 'none';
}

/** A node may list what lies below its own prefix, if nothing else. */
async function lookFor(
  bucket: Bucket,
  key: string,
  options: CallOptions,
): Promise<'absent' | 'present' | Error> {
  const { client, name, prefix } = bucket;
  const full = `${prefix}${key}`;
  try {
    // What begins with the key sorts behind the key itself.
    const command = new ListObjectsV2Command({ Bucket: name, Prefix: full, MaxKeys: 1 });
    const page = requireListing(await client.send(command, options));
    return page.Contents?.[0]?.Key === full ? 'present' : 'absent';
  } catch (error) {
    // What the read has met is the thing to tell; this only says that it is not known.
    if (error instanceof Error) return error;
    throw error;
  }
}
