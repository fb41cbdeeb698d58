import { cpSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Inventory, readInventory } from '../../../src/lib/backup/inventory.ts';
import { applyRemovals, type RemovalResult } from '../../../src/lib/backup/retention/apply.ts';
import { planRemovals } from '../../../src/lib/backup/retention/plan.ts';
import { isGood, planRetention } from '../../../src/lib/backup/retention/policy.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import type { Store } from '../../../src/lib/store/store.ts';
import { writeSet } from '../../support/backup-files.ts';
import { prefix } from '../../support/inventories.ts';
import { makeTempDir } from '../../support/temp.ts';

const now = new Date('2026-06-10T04:00:00Z');
const day = (number: number): Date => new Date(Date.UTC(2026, 5, number, 3));
const live = new AbortController().signal;

/** Ten days of two databases; `b` is gone since the fourth, `c` was once there. One run was killed, one dump is launch-pad's. */
async function makeHistory(): Promise<string> {
  const root = makeTempDir();
  const store = openFileStore(root);
  for (let number = 1; number <= 10; number++) {
    const databases = ['a', ...(number <= 4 ? ['b'] : []), ...(number === 2 ? ['c'] : [])];
    const evidence =
      number === 3 ? [{ database: 'a', level: 'broken' as const, error: 'it is cut' }] : undefined;
    const isFinished = number !== 6;
    await writeSet(store, prefix, { at: day(number), databases, isFinished, ...(evidence && { evidence }) });
  }
  await store.put(`${prefix}a/2026-05-01T03-00-00Z.sql.gz`, 'of launch-pad');
  for (const { key, updatedAt } of await store.list(prefix)) {
    const found = /(\d{4}-\d\d-\d\d)T/.exec(key)?.[1] ?? updatedAt.toISOString().slice(0, 10);
    const at = new Date(`${found}T03:00:00Z`);
    utimesSync(join(root, key), at, at);
  }
  return root;
}

function plan(inventory: Inventory, retentionDays = 1) {
  const policy = { retentionDays };
  const databases = planRetention(inventory, { policy, now, failing: new Set() });
  return planRemovals(inventory, databases, { prefix, now });
}

/** Of the nth change on nothing reaches the store any more, as after a kill. */
function cutAfter(store: Store, changes: number): Pick<Store, 'put' | 'delete'> & { done(): number } {
  let count = 0;
  const counted = async <T>(act: () => Promise<T>): Promise<T> => {
    if (count >= changes) throw new Error('killed');
    count += 1;
    return await act();
  };
  return {
    done: () => count,
    put: (key, body, condition) => counted(() => store.put(key, body, condition)),
    delete: (key) => counted(() => store.delete(key)),
  };
}

const keysOf = async (store: Store): Promise<string[]> =>
  (await store.list(prefix)).map(({ key }) => key.slice(prefix.length));

describe('a prune', () => {
  it('takes dumps, the sets of which none is left, and then nothing more (L89)', async () => {
    const store = openFileStore(await makeHistory());
    const removals = plan(await readInventory(store, prefix));
    const results = await applyRemovals(store, removals, live);
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    const own = (number: string, ...files: string[]): string[] =>
      files.map((file) => `_sets/2026-06-${number}T03-00-00Z/${file}`);
    expect(await keysOf(store)).toEqual([
      ...own('01', 'globals.sql.gz', 'manifest.json', 'pruned.json'),
      ...own('02', 'globals.sql.gz', 'manifest.json', 'pruned.json'),
      ...own('03', 'evidence.json', 'globals.sql.gz', 'manifest.json', 'pruned.json'),
      ...own('04', 'globals.sql.gz', 'manifest.json', 'pruned.json'),
      ...own('09', 'globals.sql.gz', 'manifest.json'),
      ...own('10', 'globals.sql.gz', 'manifest.json'),
      ...['a/2026-06-09', 'a/2026-06-10', 'b/2026-06-01', 'b/2026-06-02', 'b/2026-06-03', 'b/2026-06-04'].map(
        (key) => `${key}T03-00-00Z.sql.gz`,
      ),
      'c/2026-06-02T03-00-00Z.sql.gz',
    ]);
    expect(plan(await readInventory(store, prefix))).toEqual([]);
  });
});

describe('a prune that is killed', () => {
  it('leaves no dump that is less than it was, and nothing that is gone and claimed (O32, R53)', async () => {
    const template = await makeHistory();
    const before = await readInventory(openFileStore(template), prefix);
    const good = new Set(before.dumps.filter(isGood).map(({ key }) => key));
    const whole = makeTempDir();
    cpSync(template, whole, { recursive: true, preserveTimestamps: true });
    await applyRemovals(openFileStore(whole), plan(before), live);
    const end = await keysOf(openFileStore(whole));
    let cuts = 0;
    for (let isCut = true; isCut; cuts += 1) {
      const root = makeTempDir();
      cpSync(template, root, { recursive: true, preserveTimestamps: true });
      const store = openFileStore(root);
      const cut = cutAfter(store, cuts);
      const results: RemovalResult[] = await applyRemovals(cut, plan(before), live);
      isCut = results.some(({ error }) => error !== undefined);
      const after = await readInventory(store, prefix);
      expect(after.dumps.filter(({ updatedAt }) => updatedAt === undefined)).toEqual([]);
      expect(after.dumps.filter((dump) => good.has(dump.key) && !isGood(dump))).toEqual([]);
      // What is left of it goes the next time, and nothing else.
      await applyRemovals(store, plan(after), live);
      expect(await keysOf(store)).toEqual(end);
    }
    expect(cuts).toBeGreaterThan(20);
  }, 60_000);
});
