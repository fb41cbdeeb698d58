// Which dump a person means, and what a look at a set makes of the documents.
import { describe, expect, it } from 'vitest';
import type { BackupSet, Dump, Inventory } from '../../../src/lib/backup/inventory.ts';
import type { Manifest } from '../../../src/lib/backup/manifest.ts';
import { parseStamp } from '../../../src/lib/backup/names.ts';
import { postgres } from '../../../src/lib/backup/postgres/engine.ts';
import { chooseDump, requireTargetName } from '../../../src/lib/backup/restore/choice.ts';
import { compareRows } from '../../../src/lib/backup/restore/compare.ts';
import type { BackupsDocument } from '../../../src/lib/backup/state.ts';
import { buildEvidence, chooseSet, recordFindings } from '../../../src/lib/backup/verify/record.ts';
import type { SetFindings } from '../../../src/lib/backup/verify/set.ts';

const stamps = ['2026-06-01T03-00-00Z', '2026-06-02T03-00-00Z', '2026-06-03T03-00-00Z'] as const;
const atOf = (stamp: string): Date => parseStamp(stamp) as Date;

function aDump(stamp: string, level: Dump['level'], overrides: Partial<Dump> = {}): Dump {
  const key = `p/shop/${stamp}.sql.gz`;
  return { database: 'shop', key, stamp, at: atOf(stamp), sizeBytes: 10, level, ...overrides };
}

function aSet(stamp: string, overrides: Partial<BackupSet> = {}): BackupSet {
  const record = {
    database: 'shop',
    key: `p/shop/${stamp}.sql.gz`,
    sizeBytes: 10,
    rawBytes: 20,
    sha256: '',
    tables: [],
  };
  const manifest = { databases: [record] } as unknown as Manifest;
  return { stamp, at: atOf(stamp), manifest, keys: [], updatedAt: atOf(stamp), ...overrides } as BackupSet;
}

const inventory = (dumps: readonly Dump[], sets: readonly BackupSet[] = []): Inventory =>
  ({ dumps, sets, unrecognised: [] }) as unknown as Inventory;

describe('the dump to restore', () => {
  const [first, second, third] = stamps;

  it.each([
    ['the newest good one', [aDump(first, 'restored'), aDump(second, 'readable')], second],
    ['not a broken one that is newer', [aDump(first, 'readable'), aDump(second, 'broken')], first],
    ['not one that nothing speaks for', [aDump(first, 'readable'), aDump(second, 'uploaded')], first],
    ['such a one where there is no other', [aDump(first, 'uploaded'), aDump(second, 'broken')], first],
  ])('is %s', (_, dumps, stamp) => {
    expect(chooseDump(inventory(dumps), { database: 'shop' }).dump.stamp).toBe(stamp);
  });

  it('is that of the set that was named, with what its manifest says', () => {
    const all = inventory([aDump(first, 'readable'), aDump(second, 'readable')], [aSet(first), aSet(second)]);
    const chosen = chooseDump(all, { database: 'shop', stamp: first });
    expect([chosen.dump.stamp, chosen.record?.rawBytes]).toEqual([first, 20]);
    const alone = chooseDump(inventory([aDump(first, 'uploaded')]), { database: 'shop' });
    expect([alone.record, alone.manifest]).toEqual([undefined, undefined]);
  });

  it.each([
    [
      'shop',
      second,
      [aDump(second, 'broken', { fault: 'it is cut' })],
      /its dump of .* is broken: it is cut/,
    ],
    [
      'shop',
      third,
      [aDump(first, 'readable')],
      /it has no dump of 2026-06-03.*; the last ones are 2026-06-01/,
    ],
    ['none', undefined, [aDump(first, 'readable')], /it has no dump; there are dumps of "shop"$/],
    ['none', undefined, [], /it has no dump; there are no backups at all$/],
  ])('of %j %s is refused where there is none that is good', (database, stamp, dumps, message) => {
    const wanted = { database, ...(stamp === undefined ? {} : { stamp }) };
    expect(() => chooseDump(inventory(dumps), wanted)).toThrow(message);
  });

  it.each(['', 'a\0b', 'x'.repeat(64), '☃'.repeat(22), 'template0', 'reeve-restore-1'])(
    'goes into no %j',
    (name) => {
      expect(() => requireTargetName(postgres, name)).toThrow(/^cannot restore into /);
    },
  );

  it.each(['x'.repeat(63), '-Fc', 'postgres', 'a/b'])('goes into %j', (name) => {
    expect(() => requireTargetName(postgres, name)).not.toThrow();
  });
});

describe('rows', () => {
  it('are compared by table, whatever their order', () => {
    const table = (name: string, rows: number) => ({ schema: 's', table: name, rows });
    expect(compareRows([table('a', 1), table('b', 2)], [table('b', 2), table('a', 1)])).toEqual([]);
    expect(compareRows([table('a', 1), table('b', 2)], [table('c', 0), table('a', 3)])).toEqual([
      'table "s"."a" has 3 rows, and 1 were dumped',
      'table "s"."b" is missing',
      'table "s"."c" was not dumped',
    ]);
  });
});

describe('what a look finds', () => {
  const [first, second] = stamps;
  const checkedAt = new Date('2026-06-05T00:00:00Z');
  const findings: SetFindings = {
    globals: { kind: 'found', level: 'readable' },
    databases: [
      { database: 'shop', finding: { kind: 'found', level: 'broken', error: 'it is cut' } },
      { database: 'blog', finding: { kind: 'unknown', error: 'the store is away' } },
      {
        database: 'new',
        finding: { kind: 'found', level: 'restored', restored: { tables: 1, rows: 2, durationMs: 3 } },
      },
    ],
    notes: [],
  };

  it('is of the newest set that has said what it is, or of the one that was named', () => {
    const unfinished = aSet(second, { manifest: undefined });
    const damaged = aSet(second, { manifest: undefined, fault: 'it is no JSON' });
    expect(chooseSet(inventory([], [aSet(first), unfinished]), undefined)?.stamp).toBe(first);
    expect(chooseSet(inventory([], [aSet(first), damaged]), undefined)?.stamp).toBe(second);
    expect(chooseSet(inventory([], [aSet(first), aSet(second)]), first)?.stamp).toBe(first);
    expect(chooseSet(inventory([]), undefined)).toBeUndefined();
  });

  it('is evidence, and takes no earlier evidence from what could not be looked at', () => {
    const dumps = [aDump(first, 'readable', { database: 'blog', level: 'restored' })];
    expect(buildEvidence(findings, { dumps, checkedAt })).toEqual({
      ...{ version: 1, checkedAt: checkedAt.toISOString(), globals: { level: 'readable' } },
      databases: [
        { database: 'shop', level: 'broken', error: 'it is cut' },
        { database: 'blog', level: 'restored' },
        { database: 'new', level: 'restored' },
      ],
    });
  });

  it('is what is known of the last dump, and of an earlier one no more than when it was restored', () => {
    const known = { lastSuccessAt: atOf(second).toISOString(), sizeBytes: 1, level: 'readable' as const };
    const record = { ...known, restoredAt: null, lastError: null };
    const databases = { shop: record, blog: record, new: record };
    const service = { lastRunAt: null, lastSuccessAt: null, lastError: null, databases };
    const document = { anchors: {}, services: { 'p/s': service } } as unknown as BackupsDocument;
    const about = { checkedAt, databases: findings.databases };
    const restoredAt = checkedAt.toISOString();
    const last = recordFindings(document, 'p/s', { ...about, at: atOf(second) });
    expect(last.services['p/s']?.databases).toEqual({
      shop: { ...record, level: 'broken' },
      blog: record,
      new: { ...record, level: 'restored', restoredAt },
    });
    const earlier = recordFindings(document, 'p/s', { ...about, at: atOf(first) });
    expect(earlier.services['p/s']?.databases).toEqual({
      shop: record,
      blog: record,
      new: { ...record, restoredAt },
    });
    expect(recordFindings(document, 'p/other', { ...about, at: atOf(first) })).toBe(document);
  });
});
