// All objects below a prefix, page by page.
import { ListObjectsV2Command, type _Object as S3Object } from '@aws-sdk/client-s3';
import { type Bucket, callS3 } from './s3-client.ts';

/** Whole keys, the bucket's prefix included, in the service's own order. */
export async function listObjects(bucket: Bucket, listed: string): Promise<S3Object[]> {
  const { client, name, prefix } = bucket;
  const objects: S3Object[] = [];
  let token: string | undefined;
  do {
    const command = new ListObjectsV2Command({
      ...{ Bucket: name, Prefix: `${prefix}${listed}`, ContinuationToken: token },
      // Otherwise one key that XML cannot hold would hide all others.
      EncodingType: 'url',
    });
    const page = await callS3(bucket, { verb: 'list', key: listed }, (options) =>
      client.send(command, options),
    );
    const decode = page.EncodingType === 'url' ? decodeKey : (key: string) => key;
    for (const { Key: key = '', ...about } of page.Contents ?? [])
      objects.push({ ...about, Key: decode(key) });
    token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
  } while (token !== undefined);
  return objects;
}

function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    // Bytes that are no text: nobody's key.
    return '';
  }
}
