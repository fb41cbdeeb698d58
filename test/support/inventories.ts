// Inventories of a service's backups as values: dumps by their instants, and the sets that they are in.
import type { BackupSet, Dump, Inventory } from '../../src/lib/backup/inventory.ts';
import type { Manifest } from '../../src/lib/backup/manifest.ts';
import { dumpKey, setKey, stampOf } from '../../src/lib/backup/names.ts';

export const prefix = 'default/blog/db/';

/** A good dump of the database `app`, written at its fire. `2026-06-04` is 03:00 of that day. */
export function aDump(instant: string, overrides: Partial<Dump> = {}): Dump {
  const at = new Date(instant.length === 10 ? `${instant}T03:00:00Z` : instant);
  const stamp = stampOf(at);
  const { database = 'app' } = overrides;
  const key = dumpKey(prefix, database, stamp);
  return { database, key, stamp, at, sizeBytes: 1000, level: 'readable', updatedAt: at, ...overrides };
}

export function aManifest(at: Date, overrides: Partial<Manifest> = {}): Manifest {
  const instant = at.toISOString();
  return {
    ...{ version: 1, project: 'blog', service: 'db', nodeId: 'web-1', engine: 'postgres' },
    ...{ serverVersion: '15.18', image: 'postgres:15', imageId: 'sha256:1' },
    ...{ firedAt: instant, startedAt: instant, endedAt: instant },
    ...{ databases: [], failures: [], skipped: [] },
    ...overrides,
  };
}

/** The set of these dumps; those that nothing is said of are not in its manifest. */
export function aSet(dumps: readonly Dump[], overrides: Partial<BackupSet> = {}): BackupSet {
  const [first] = dumps;
  const at = overrides.at ?? first?.at ?? new Date(0);
  const stamp = stampOf(at);
  const databases = dumps
    .filter(({ level }) => level !== 'uploaded')
    .map(({ database, key, sizeBytes }) => {
      const digest = { sha256: '0'.repeat(64), rawBytes: sizeBytes, tables: [] };
      return { database, key, sizeBytes, ...digest };
    });
  const keys = (['globals', 'manifest'] as const).map((file) => setKey(prefix, stamp, file));
  return { stamp, at, pruned: [], keys, updatedAt: at, manifest: aManifest(at, { databases }), ...overrides };
}

/** Each instant's dumps in a set of their own. */
export function anInventory(dumps: readonly Dump[], overrides: Partial<Inventory> = {}): Inventory {
  const sorted = dumps.toSorted((a, b) => a.at.getTime() - b.at.getTime());
  const stamps = [...new Set(sorted.map(({ stamp }) => stamp))];
  const written = sorted.flatMap(({ updatedAt }) => (updatedAt === undefined ? [] : [updatedAt.getTime()]));
  return {
    dumps: sorted,
    sets: stamps.map((stamp) => aSet(sorted.filter((dump) => dump.stamp === stamp))),
    unrecognised: [],
    ...(written.length === 0 ? {} : { updatedAt: new Date(Math.max(...written)) }),
    ...overrides,
  };
}
