// What S3 says about an object, as a store's driver says it.
import { UnavailableError } from '../errors.ts';

type About = { ETag?: string | undefined; LastModified?: Date | undefined };

export function describeObject(key: string, { ETag: tag, LastModified: updatedAt }: About) {
  return { key, etag: requireEtag(key, tag), updatedAt: updatedAt ?? new Date(0) };
}

/** Without its quotes. Throws UnavailableError where there is none: nothing could be written on condition. */
export function requireEtag(key: string, tag: string | undefined): string {
  if (tag !== undefined) return tag.replace(/^(?:W\/)?"|"$/g, '');
  throw new UnavailableError(`cannot use ${JSON.stringify(key)}: the service gives it no etag`);
}

/** launch-pad's, for what it writes as well. */
export function contentTypeOf(key: string): string {
  if (key.endsWith('.json')) return 'application/json';
  return key.endsWith('.gz') ? 'application/gzip' : 'application/octet-stream';
}
