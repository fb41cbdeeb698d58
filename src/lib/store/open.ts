// The store that a URL names. Each driver is loaded only where it is used.
import { fileURLToPath } from 'node:url';
import { cloudPlaceOf } from '../aws/settings.ts';
import { ConfigError } from '../errors.ts';
import { isKey } from './key.ts';
import type { Store } from './store.ts';

/** A store as the configuration names it. `region` and `endpoint` are for S3. */
export type StorePlace = { store: string; region?: string | undefined; endpoint?: string | undefined };

/** Throws ConfigError for anything that names no store. Reaches for nothing yet. */
export async function openStore(place: StorePlace, options: { signal?: AbortSignal } = {}): Promise<Store> {
  const url = place.store;
  const parsed = parseStoreUrl(url);
  if (parsed.protocol === 'file:') {
    const { openFileStore } = await import('./file.ts');
    return openFileStore(requireDirectoryPath(url, parsed), options);
  }
  if (parsed.protocol === 's3:') {
    const s3 = requireBucketName(url, parsed);
    const { openS3Store } = await import('./s3.ts');
    return openS3Store(
      { ...s3, place: cloudPlaceOf({ ...place, region: place.region ?? 'local' }) },
      options.signal,
    );
  }
  throw storeError(url, 'a store is file:///directory or s3://bucket[/prefix]');
}

function parseStoreUrl(url: string): URL {
  try {
    return new URL(url);
  } catch (error) {
    throw storeError(url, 'it is not a URL; a store is file:///directory or s3://bucket[/prefix]', error);
  }
}

function requireDirectoryPath(url: string, parsed: URL): string {
  try {
    const path = fileURLToPath(parsed);
    if (parsed.search === '' && parsed.hash === '') return path;
  } catch (error) {
    throw storeError(url, 'it names a host; write file:///directory with three slashes', error);
  }
  throw storeError(url, 'a directory has no query and no fragment');
}

/** S3's own rule for names. */
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Throws ConfigError for anything but `s3://bucket[/prefix]`. The prefix has no slash at its ends. */
export function parseBucketUrl(url: string): { bucket: string; prefix: string } {
  const parsed = parseStoreUrl(url);
  if (parsed.protocol !== 's3:') throw storeError(url, 'it is not in S3');
  return requireBucketName(url, parsed);
}

function requireBucketName(url: string, parsed: URL): { bucket: string; prefix: string } {
  const { host, pathname, search, hash, username, password } = parsed;
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

function storeError(url: string, cause: string, error?: unknown): ConfigError {
  return new ConfigError(`cannot open store ${JSON.stringify(url)}: ${cause}`, {
    cause: error,
    code: 'store-url',
  });
}
