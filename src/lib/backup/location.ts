// Where backups lie, as names alone. Pure.
import type { DesiredService } from '../cluster/wire.ts';

type Location = Pick<NonNullable<DesiredService['backup']>, 'bucket' | 'prefix'>;

/** launch-pad names a bucket and nothing else. */
export function storeUrlOf(bucket: string): string {
  return /^[a-z0-9]+:/.test(bucket) ? bucket : `s3://${bucket}`;
}

/** One lies where the other does, or around or below it: retention would meet both. */
export function overlap(one: Location, other: Location): boolean {
  const [place, its] = [pathOf(one), pathOf(other)];
  return its.startsWith(place) || place.startsWith(its);
}

/** A prefix may be named in the bucket's URL, or beside it. */
function pathOf({ bucket, prefix }: Location): string {
  return `${storeUrlOf(bucket).replace(/\/+$/, '')}/${prefix.replace(/\/*$/, '/')}`;
}
