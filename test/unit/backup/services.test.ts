import { describe, expect, it } from 'vitest';
import { type BackedUp, findOverlap } from '../../../src/lib/backup/services.ts';
import { aDatabase } from '../../support/builders.ts';

function aBackedUp(service: string, bucket: string, prefix: string): BackedUp {
  const backup = { schedule: '0 3 * * *', retentionDays: 7, bucket, prefix };
  return { ...aDatabase({ service }), backup };
}

describe('backups of two services', () => {
  it.each([
    ['one prefix', 'store', 'c/p/db/', 's3://store', 'c/p/db'],
    ['one inside the other', 's3://store', 'c/p/db/', 's3://store/', 'c/p/db/nested/'],
    ['a prefix in the URL of one', 's3://store/c', 'p/db/', 's3://store', 'c/p/db/'],
    ['a directory below that of the other', 'file:///backups/c', 'p/db/', 'file:///backups', 'c/p/'],
  ])('lie among each other with %s (O28)', (_, bucket, prefix, otherBucket, otherPrefix) => {
    const [one, other] = [aBackedUp('db', bucket, prefix), aBackedUp('other', otherBucket, otherPrefix)];
    expect([findOverlap(one, [one, other]), findOverlap(other, [one, other])]).toEqual([
      'blog/other',
      'blog/db',
    ]);
  });

  it.each([
    ['names that only begin alike', 's3://store', 'c/p/db/', 's3://store', 'c/p/db2/'],
    ['buckets that only begin alike', 's3://store', 'c/p/db/', 's3://store2', 'c/p/db/'],
  ])('lie apart with %s (O28)', (_, bucket, prefix, otherBucket, otherPrefix) => {
    const [one, other] = [aBackedUp('db', bucket, prefix), aBackedUp('other', otherBucket, otherPrefix)];
    expect([findOverlap(one, [one, other]), findOverlap(other, [one, other])]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
