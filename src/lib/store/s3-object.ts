// What S3 says about an object, as a store's driver says it.
type About = { ETag?: string | undefined; LastModified?: Date | undefined };

export function describeObject(key: string, { ETag: tag, LastModified: updatedAt }: About) {
  return { key, etag: requireEtag(tag), updatedAt: updatedAt ?? new Date(0) };
}

/** Whoever has answered is no such service. Completes the sentence that its address begins. */
export class ForeignAnswer extends Error {}

/** Without its quotes. Throws ForeignAnswer where there is none: nothing could be written on condition. */
export function requireEtag(tag: string | undefined): string {
  if (tag !== undefined) return tag.replace(/^(?:W\/)?"|"$/g, '');
  throw new ForeignAnswer('answers without an etag');
}

/** launch-pad's, for what it writes as well. */
export function contentTypeOf(key: string): string {
  if (key.endsWith('.json')) return 'application/json';
  return key.endsWith('.gz') ? 'application/gzip' : 'application/octet-stream';
}
