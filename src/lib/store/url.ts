// URLs of stores, and what is wrong with one.
import { ConfigError } from '../errors.ts';

/** Throws ConfigError. */
export function parseStoreUrl(url: string): URL {
  try {
    return new URL(url);
  } catch (error) {
    throw storeError(url, 'it is not a URL; a store is file:///directory or s3://bucket[/prefix]', error);
  }
}

export function storeError(url: string, cause: string, error?: unknown): ConfigError {
  return new ConfigError(`cannot open store ${JSON.stringify(url)}: ${cause}`, {
    cause: error,
    code: 'store-url',
  });
}
