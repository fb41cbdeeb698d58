// The bucket that a store's URL names. Nothing here needs the service.
import { isKey } from './key.ts';
import { storeError } from './url.ts';

/** S3's own rule for names. */
export const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
export const bucketRule =
  'the name of a bucket has 3 to 63 small letters, digits, "." and "-", and begins and ends with a letter or digit';

/** Throws ConfigError for anything but `s3://bucket[/prefix]`. The prefix has no slash at its ends. */
export function parseBucketUrl(url: string): { bucket: string; prefix: string } {
  const fault = findBucketFault(url);
  if (fault !== undefined) throw storeError(url, fault);
  const { bucket = '', path = '' } = splitUrl(url) ?? {};
  return { bucket, prefix: decodePath(path) ?? '' };
}

/** What is wrong with `s3://bucket[/prefix]`; undefined where nothing is. The one rule, for the configuration as well. */
export function findBucketFault(url: string): string | undefined {
  const parts = splitUrl(url);
  if (parts === undefined) return 'it is not in S3: write s3://bucket[/prefix]';
  const { bucket, path } = parts;
  if (/[?#@\s]/.test(url)) return 'a bucket has no user, no query, no fragment and no blank';
  if (!bucketPattern.test(bucket)) return bucketRule;
  const prefix = decodePath(path);
  if (prefix === undefined) return 'its prefix has an escape that is no text';
  if (prefix === '' || isKey(prefix)) return undefined;
  return 'no part of its prefix is empty, begins with a dot, or is longer than a name may be';
}

/** As it is written: a URL's parser would make the host of it small letters. */
function splitUrl(url: string): { bucket: string; path: string } | undefined {
  const [, bucket, path = ''] = /^s3:\/\/([^/]*)(\/.*)?$/s.exec(url) ?? [];
  return bucket === undefined ? undefined : { bucket, path };
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path).replace(/^\/|\/$/g, '');
  } catch {
    return undefined;
  }
}
