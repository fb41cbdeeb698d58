// The bucket that a store's URL names. Nothing here needs the service.
import { isKey } from './key.ts';
import { parseStoreUrl, storeError } from './url.ts';

/** S3's own rule for names. */
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Throws ConfigError for anything but `s3://bucket[/prefix]`. The prefix has no slash at its ends. */
export function parseBucketUrl(url: string): { bucket: string; prefix: string } {
  const { protocol, host, pathname, search, hash, username, password } = parseStoreUrl(url);
  if (protocol !== 's3:') throw storeError(url, 'it is not in S3');
  if (!bucketPattern.test(host)) throw storeError(url, 'it names no bucket; write s3://bucket[/prefix]');
  if (search !== '' || hash !== '' || username !== '' || password !== '') {
    throw storeError(url, 'a bucket has no user, no query and no fragment');
  }
  const prefix = decodePath(url, pathname).replace(/^\/|\/$/g, '');
  if (prefix !== '' && !isKey(prefix)) throw storeError(url, 'its prefix is no plain name');
  return { bucket: host, prefix };
}

function decodePath(url: string, path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    throw storeError(url, 'its prefix is no text', error);
  }
}
