// The store that a URL names. Each driver is loaded only where it is used.
import { fileURLToPath } from 'node:url';
import type { Store } from './store.ts';
import { parseStoreUrl, storeError } from './url.ts';

/** A store as the configuration names it. `region` and `endpoint` are for S3. */
export type StorePlace = { store: string; region?: string | undefined; endpoint?: string | undefined };

/** Throws ConfigError for anything that names no store. Reaches for nothing yet. `setting` as in `openFileStore`. */
export async function openStore(
  place: StorePlace,
  options: { signal?: AbortSignal; setting?: string } = {},
): Promise<Store> {
  const url = place.store;
  const parsed = parseStoreUrl(url);
  if (parsed.protocol === 'file:') {
    const { openFileStore } = await import('./file.ts');
    return openFileStore(requireDirectoryPath(url, parsed), options);
  }
  if (parsed.protocol === 's3:') {
    const { openBucket } = await import('./s3.ts');
    return openBucket(place, options.signal);
  }
  throw storeError(url, 'a store is file:///directory or s3://bucket[/prefix]');
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
