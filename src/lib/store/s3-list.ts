// All objects below a prefix, page by page.
import {
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  type _Object as S3Object,
} from '@aws-sdk/client-s3';
import { UnavailableError } from '../errors.ts';
import { type Bucket, callS3 } from './s3-client.ts';
import { ForeignAnswer, requireEtag } from './s3-object.ts';

/** A million keys: one that is longer does not end. */
const maxPages = 1000;

/** Whole keys, the bucket's prefix included, in the service's own order. */
export async function listObjects(bucket: Bucket, listed: string): Promise<S3Object[]> {
  const { client, name, prefix } = bucket;
  const objects: S3Object[] = [];
  let token: string | undefined;
  let pages = 0;
  do {
    const command = new ListObjectsV2Command({
      ...{ Bucket: name, Prefix: `${prefix}${listed}`, ContinuationToken: token },
      // Otherwise one key that XML cannot hold would hide all others.
      EncodingType: 'url',
    });
    const page = await callS3(bucket, { verb: 'list', key: listed }, async (options) =>
      requireListing(await client.send(command, options)),
    );
    const decode = page.EncodingType === 'url' ? decodeKey : (key: string) => key;
    for (const { Key: key = '', ...about } of page.Contents ?? [])
      objects.push({ ...about, Key: decode(key) });
    pages += 1;
    token = requireNext(bucket, page, { token, pages });
  } while (token !== undefined);
  return objects;
}

/** A page of somebody else's, as of a proxy in between, reads like a list of nothing. Throws ForeignAnswer. */
export function requireListing<Page extends Pick<ListObjectsV2CommandOutput, 'Name' | 'Contents'>>(
  page: Page,
): Page {
  if (page.Name === undefined) throw new ForeignAnswer('answers with what is no list');
  for (const { ETag } of page.Contents ?? []) requireEtag(ETag);
  return page;
}

/** Half a list must not be taken for a whole one: what it leaves out would be taken for gone. */
function requireNext(
  { name }: Bucket,
  { IsTruncated: isTruncated, NextContinuationToken: next }: ListObjectsV2CommandOutput,
  last: { token: string | undefined; pages: number },
): string | undefined {
  if (isTruncated !== true) return undefined;
  if (last.pages === maxPages) {
    throw new UnavailableError(`cannot list bucket "${name}": it does not end within ${maxPages} pages`);
  }
  if (next !== undefined && next !== last.token) return next;
  throw new UnavailableError(
    `cannot list bucket "${name}": the service breaks off and does not say how to go on`,
  );
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    // Bytes that are no text: nobody's key.
    return '';
  }
}
