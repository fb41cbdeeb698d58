import { describe, expect, it } from 'vitest';
import {
  decodeDatabase,
  dumpKey,
  encodeDatabase,
  parseBackupKey,
  parseStamp,
  setKey,
  stampOf,
} from '../../../src/lib/backup/names.ts';
import { isKey } from '../../../src/lib/store/key.ts';

const names = [
  ...[
    'app',
    'App_2',
    'a.b-c',
    '-Fc',
    'a=b',
    'postgres://x',
    '../evil',
    '..',
    '.hidden',
    '_sets',
    '_other',
    '%41',
  ],
  ...["it's", 'two\nlines', 'naïve', '雪', 'a/b', ' ', '\u007f', 'ü'.repeat(31)],
];

describe('a database in keys', () => {
  it.each(names)('comes back as it was: %j (L78)', (name) => {
    const part = encodeDatabase(name);
    expect(part).not.toContain('/');
    expect(isKey(`p/${part}`)).toBe(true);
    expect(decodeDatabase(part)).toBe(name);
    const key = dumpKey('c/blog/db/', name, '2026-06-04T03-00-00Z');
    expect(parseBackupKey('c/blog/db/', key)).toEqual({
      ...{ kind: 'dump', database: name, stamp: '2026-06-04T03-00-00Z' },
      at: new Date('2026-06-04T03:00:00Z'),
    });
  });

  it('has no two names written alike, whatever the case', () => {
    expect(new Set(names.map(encodeDatabase)).size).toBe(names.length);
  });

  it('is plain where the name is', () => {
    expect(dumpKey('default/blog/db/', 'app', '2026-06-04T03-00-00Z')).toBe(
      'default/blog/db/app/2026-06-04T03-00-00Z.sql.gz',
    );
  });

  it.each(['%61pp', '%2f', '%', '_sets', '.x', 'é'])('is not believed to be written %j', (part) => {
    expect(decodeDatabase(part)).toBeUndefined();
  });
});

describe('a stamp', () => {
  it('is the fire in UTC and whole seconds, and is read back', () => {
    expect(stampOf(new Date('2026-06-04T03:00:00.000Z'))).toBe('2026-06-04T03-00-00Z');
    expect(parseStamp('2026-06-04T03-00-00Z')).toEqual(new Date('2026-06-04T03:00:00Z'));
  });

  it.each(['2026-02-31T03-00-00Z', '2026-06-04T03:00:00Z', '2026-06-04T03-00-00', '', 'x'])(
    'is not %j',
    (stamp) => {
      expect(parseStamp(stamp)).toBeUndefined();
    },
  );
});

describe('a key below the prefix', () => {
  it.each(['manifest', 'globals', 'evidence'] as const)('of a set names its %s', (file) => {
    const key = setKey('p/', '2026-06-04T03-00-00Z', file);
    expect(parseBackupKey('p/', key)).toMatchObject({ kind: 'set', file, stamp: '2026-06-04T03-00-00Z' });
  });

  it.each([
    'q/app/2026-06-04T03-00-00Z.sql.gz',
    'p/app/2026-06-04T03-00-00Z.sql',
    'p/app/notes.txt',
    'p/app/x/2026-06-04T03-00-00Z.sql.gz',
    'p/_sets/2026-06-04T03-00-00Z/other.json',
    'p/_sets/x/manifest.json',
    'p/app.sql.gz',
  ])('is nobody’s backup: %s', (key) => {
    expect(parseBackupKey('p/', key)).toBeUndefined();
  });
});
