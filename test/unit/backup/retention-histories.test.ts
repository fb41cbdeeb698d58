// Retention over random histories of a service: good, failed and killed runs, broken dumps, clocks that are set forth and back,
// and prunes in between. A seed that fails is in the test's name.
import { describe, expect, it } from 'vitest';
import type { Dump } from '../../../src/lib/backup/inventory.ts';
import {
  findClockFault,
  isGood,
  planRetention,
  type RetentionPolicy,
} from '../../../src/lib/backup/retention/policy.ts';
import { aDump, anInventory } from '../../support/inventories.ts';
import { createRandom, type Random } from '../../support/random.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const databases = ['a', 'b'] as const;

type History = {
  /** What the store's clock says. */
  time: number;
  /** How far the node's is ahead of that. */
  skewMs: number;
  /** A directory is stamped by the node's own clock. */
  isDirectory: boolean;
  dumps: Dump[];
  failing: Set<string>;
};

function backUp(history: History, random: Random): void {
  const { time, skewMs, isDirectory } = history;
  const at = new Date(time + skewMs);
  const written = isDirectory ? at : new Date(time);
  for (const database of databases) {
    const end = random.below(10);
    history.failing.delete(database);
    if (end < 3) history.failing.add(database);
    if (end < 2) continue;
    const level = end === 2 ? 'uploaded' : end === 3 ? 'broken' : 'readable';
    const dump = aDump(at.toISOString(), {
      database,
      level,
      updatedAt: written,
      ...(end === 3 && { fault: 'x' }),
    });
    history.dumps = [...history.dumps.filter(({ key }) => key !== dump.key), dump];
  }
}

function step(history: History, random: Random): void {
  history.time += random.pick([hourMs, 6 * hourMs, dayMs, dayMs, dayMs, 3 * dayMs, 12 * dayMs]);
  const turn = random.below(12);
  if (turn === 0) history.skewMs = random.pick([-40, -2, 2, 40, 400]) * dayMs;
  if (turn === 1) history.skewMs = 0;
  if (turn < 10) backUp(history, random);
}

const goodOf = (dumps: readonly Dump[], database: string): Dump[] =>
  dumps.filter((dump) => dump.database === database && isGood(dump));

function aPolicy(random: Random): RetentionPolicy {
  const tiers = ['last', 'daily', 'weekly', 'monthly', 'yearly', 'minimum'] as const;
  const chosen = tiers.filter(() => random.below(3) === 0).map((tier) => [tier, 1 + random.below(4)]);
  const retentionDays = 1 + random.below(10);
  return chosen.length === 0 ? { retentionDays } : { retentionDays, retention: Object.fromEntries(chosen) };
}

/** What has to be there of each database, told another way than the planner tells it. */
function requireKept(
  before: readonly Dump[],
  after: readonly Dump[],
  policy: RetentionPolicy,
  now: Date,
): void {
  const { retentionDays, retention = {} } = policy;
  for (const database of databases) {
    const had = goodOf(before, database).filter(({ at }) => at <= now);
    const has = new Set(goodOf(after, database).map(({ key }) => key));
    const newest = had.toReversed();
    expect(has.size).toBeGreaterThanOrEqual(Math.min(had.length, retention.minimum ?? 1, 1));
    const wanted = newest.filter(
      ({ at }, place) =>
        place < Math.max(retention.minimum ?? 1, retention.last ?? 0) ||
        now.getTime() - at.getTime() <= retentionDays * dayMs,
    );
    for (const { key } of wanted) expect(has).toContain(key);
    for (const [length, count] of [
      [10, retention.daily],
      [7, retention.monthly],
      [4, retention.yearly],
    ] as const) {
      const periodOf = ({ at }: Dump): string => at.toISOString().slice(0, length);
      const periods = [...new Set(newest.map(periodOf))].slice(0, count ?? 0);
      const covered = new Set(goodOf(after, database).map(periodOf));
      for (const period of periods) expect(covered).toContain(period);
    }
  }
}

function prune(history: History, policy: RetentionPolicy): number {
  const now = new Date(history.time + history.skewMs);
  const inventory = anInventory(history.dumps);
  if (findClockFault(inventory, now) !== undefined) return 0;
  const about = { policy, now, failing: history.failing };
  const plans = planRetention(inventory, about);
  const removed = new Set(
    plans.flatMap(({ decisions }) => decisions.filter(({ isKept }) => !isKept).map(({ dump }) => dump.key)),
  );
  for (const { standstill, decisions } of plans)
    if (standstill !== undefined) expect(decisions.filter(({ isKept }) => !isKept)).toEqual([]);
  const before = inventory.dumps;
  history.dumps = before.filter(({ key }) => !removed.has(key));
  requireKept(before, history.dumps, policy, now);
  const again = planRetention(anInventory(history.dumps), about).flatMap(({ decisions }) => decisions);
  expect(again.filter(({ isKept }) => !isKept)).toEqual([]);
  return removed.size;
}

/** How much of it was pruned. */
function live(history: History, policy: RetentionPolicy, random: Random): number {
  const minimum = policy.retention?.minimum ?? 1;
  const most = { a: 0, b: 0 };
  let removed = 0;
  for (let turn = 0; turn < 200; turn += 1) {
    step(history, random);
    const count = (database: 'a' | 'b'): number => goodOf(history.dumps, database).length;
    for (const database of databases) most[database] = Math.max(most[database], count(database));
    if (random.below(2) === 0) removed += prune(history, policy);
    for (const database of databases)
      expect(count(database)).toBeGreaterThanOrEqual(Math.min(minimum, most[database]));
  }
  return removed;
}

const histories = 60;
let pruned = 0;

describe('retention never takes below what its policy keeps', () => {
  it.each(Array.from({ length: histories }, (_, seed) => seed))('in history %i (O24, O25, R53)', (seed) => {
    const random = createRandom(seed);
    const policy = aPolicy(random);
    const isDirectory = random.below(2) === 0;
    const time = Date.parse('2026-01-01T03:00:00Z');
    const history: History = { time, skewMs: 0, isDirectory, dumps: [], failing: new Set() };
    if (live(history, policy, random) > 0) pruned += 1;
  });

  it('although it takes something in nearly all of them', () => {
    expect(pruned).toBeGreaterThan(histories / 2);
  });
});
