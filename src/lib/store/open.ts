// The store that a URL names. Each driver is loaded only where it is used.
import { fileURLToPath } from 'node:url';
import { ConfigError } from '../errors.ts';
import type { Store } from './store.ts';

/** `file:///directory`; throws ConfigError for anything that names no store. Reaches for nothing yet. */
export async function openStore(url: string, options: { signal?: AbortSignal } = {}): Promise<Store> {
  const parsed = parseStoreUrl(url);
  if (parsed.protocol === 'file:') {
    const { openFileStore } = await import('./file.ts');
    return openFileStore(requireDirectoryPath(url, parsed), options);
  }
  if (parsed.protocol === 's3:') throw storeError(url, 's3 is not available in this build');
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

function storeError(url: string, cause: string, error?: unknown): ConfigError {
  return new ConfigError(`cannot open store ${JSON.stringify(url)}: ${cause}`, {
    cause: error,
    code: 'store-url',
  });
}
