// Which dumps of a service stay, and why. Pure. Good dumps alone count and protect: what was dumped and read to its end. Every
// rule is looked at by itself, and a dump that any of them keeps stays. Nothing of a database goes whose backups fail.
import type { DesiredService } from '../../cluster/wire.ts';
import { dayMs } from '../../schedule/calendar.ts';
import { formatDuration } from '../../time.ts';
import type { BackupSet, Dump, Inventory } from '../inventory.ts';
import { stampOf } from '../names.ts';

export type RetentionPolicy = Pick<NonNullable<DesiredService['backup']>, 'retentionDays' | 'retention'>;

export type Decision = {
  dump: Dump;
  isKept: boolean;
  /** In words; at least one. */
  reasons: readonly string[];
};

export type DatabaseRetention = {
  database: string;
  /** Why nothing of it goes now, whatever the policy says. */
  standstill?: string;
  /** Oldest first. What is not there is not among them. */
  decisions: readonly Decision[];
};

/** So far may the clocks of a store and of the nodes be apart. In milliseconds. */
const slackMs = 5 * 60_000;
const tierNames = ['last', 'daily', 'weekly', 'monthly', 'yearly'] as const;
const knownFields: ReadonlySet<string> = new Set([...tierNames, 'minimum']);

/**
 * `failing`: databases whose last backup failed, as far as this node knows. `policy` is one that `findPolicyFault` has nothing
 * against, and `inventory` one that `findClockFault` has not.
 */
export function planRetention(
  { dumps, sets }: Inventory,
  about: { policy: RetentionPolicy; failing: ReadonlySet<string>; now: Date },
): DatabaseRetention[] {
  const failedAt = findFailures(sets);
  const names = [...new Set(dumps.map(({ database }) => database))];
  return names.map((database) => {
    const own = dumps.filter((dump) => dump.database === database);
    const isFailing = about.failing.has(database);
    return planDatabase(database, own, { ...about, isFailing, failedAt: failedAt.get(database) });
  });
}

/** Why the fields of a policy could mean another thing than was meant; undefined where there is nothing against them. */
export function findPolicyFault({ retentionDays, retention }: RetentionPolicy): string | undefined {
  const counts = { retentionDays, ...retention };
  const wrong = Object.entries(counts).find(([, count]) => !Number.isSafeInteger(count) || Number(count) < 1);
  if (wrong !== undefined) return `${wrong[0]} must be a whole number of at least 1`;
  const unknown = Object.keys(retention ?? {}).find((name) => !knownFields.has(name));
  if (unknown !== undefined) return `there is no retention ${JSON.stringify(unknown)}`;
  return retention !== undefined && Object.keys(retention).length === 0 ? 'retention is empty' : undefined;
}

/** Why ages cannot be told by this clock; undefined where nothing speaks against it. */
export function findClockFault({ dumps, updatedAt }: Inventory, now: Date): string | undefined {
  const limit = now.getTime() + slackMs;
  if (updatedAt !== undefined && updatedAt.getTime() > limit) {
    const aheadMs = updatedAt.getTime() - now.getTime();
    return `the store was written ${formatDuration(aheadMs)} ahead of this clock: one of the two is wrong`;
  }
  const newest = dumps.findLast(isGood);
  if (newest === undefined) return undefined;
  if (newest.at.getTime() > limit) return `the newest good dump is of ${newest.stamp}, which is yet to come`;
  const isEarly =
    newest.updatedAt !== undefined && newest.at.getTime() > newest.updatedAt.getTime() + slackMs;
  if (!isEarly) return undefined;
  return `the newest good dump is of ${newest.stamp}, and the store was given it before, at ${stampOf(newest.updatedAt ?? now)}: a clock was wrong`;
}

export function isGood({ level, updatedAt }: Dump): boolean {
  return updatedAt !== undefined && (level === 'readable' || level === 'restored');
}

/** By database: the last set that could not have it. */
function findFailures(sets: readonly BackupSet[]): Map<string, Date> {
  const failures = new Map<string, Date>();
  for (const { at, manifest } of sets)
    for (const { database } of manifest?.failures ?? []) if (database !== null) failures.set(database, at);
  return failures;
}

type About = {
  policy: RetentionPolicy;
  isFailing: boolean;
  failedAt: Date | undefined;
  now: Date;
};

function planDatabase(database: string, dumps: readonly Dump[], about: About): DatabaseRetention {
  const { policy, now } = about;
  const good = dumps.filter((dump) => isGood(dump) && dump.at <= now).reverse();
  const kept = protect(good, policy, now);
  const standstill = findStandstill(good[0], about);
  const decisions = dumps
    .filter(({ updatedAt }) => updatedAt !== undefined)
    .map((dump): Decision => {
      const reasons = kept.get(dump) ?? protectOther(dump, good[0], about);
      if (reasons.length > 0) return { dump, isKept: true, reasons };
      if (standstill !== undefined) return { dump, isKept: true, reasons: [standstill] };
      return { dump, isKept: false, reasons: [describeRemoval(dump, good[0], policy)] };
    });
  return { database, ...(standstill === undefined ? {} : { standstill }), decisions };
}

/** `good`: newest first, none of them in the future. All rules that keep a dump, by dump. */
function protect(good: readonly Dump[], policy: RetentionPolicy, now: Date): Map<Dump, string[]> {
  const { retentionDays, retention = {} } = policy;
  const { minimum = 1 } = retention;
  const kept = new Map<Dump, string[]>();
  const keep = (dump: Dump | undefined, reason: string): void => {
    if (dump !== undefined) kept.set(dump, [...(kept.get(dump) ?? []), reason]);
  };
  keep(good[0], 'last good');
  if (minimum > 1) for (const dump of good.slice(0, minimum)) keep(dump, `minimum of ${minimum}`);
  const cutoff = now.getTime() - retentionDays * dayMs;
  const days = formatDays(retentionDays);
  for (const dump of good) if (dump.at.getTime() >= cutoff) keep(dump, `not older than ${days}`);
  // What was there that many days ago: without it one could not go back so far.
  keep(
    good.find(({ at }) => at.getTime() < cutoff),
    `the state of ${days} ago`,
  );
  for (const tier of tierNames) {
    for (const { dump, period } of fillTier(good, tier, retention[tier] ?? 0)) keep(dump, period);
  }
  return kept;
}

/** The newest good dump of each of the newest `count` periods that have one. */
function fillTier(
  good: readonly Dump[],
  tier: (typeof tierNames)[number],
  count: number,
): { dump: Dump; period: string }[] {
  if (tier === 'last') return good.slice(0, count).map((dump) => ({ dump, period: `last ${count}` }));
  const filled = new Map<string, Dump>();
  for (const dump of good) {
    const period = `${tier} of ${periodOf(dump.at, tier)}`;
    if (!filled.has(period)) filled.set(period, dump);
  }
  return [...filled].slice(0, count).map(([period, dump]) => ({ dump, period }));
}

/** In UTC, as names are: a day has one length there, and no hour comes twice. */
function periodOf(at: Date, tier: 'daily' | 'weekly' | 'monthly' | 'yearly'): string {
  const day = at.toISOString().slice(0, 10);
  switch (tier) {
    case 'daily':
      return day;
    case 'weekly':
      return weekOf(at);
    case 'monthly':
      return day.slice(0, 7);
    case 'yearly':
      return day.slice(0, 4);
  }
}

/** ISO 8601: a week begins on Monday, and belongs to the year that its Thursday is in. */
function weekOf(at: Date): string {
  const sinceMonday = (at.getUTCDay() + 6) % 7;
  const thursday = new Date(at.getTime() + (3 - sinceMonday) * dayMs);
  const year = thursday.getUTCFullYear();
  const week = 1 + Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * dayMs));
  return `${year}-W${String(week).padStart(2, '0')}`;
}

/** What keeps a dump that is not good, or is of a time to come. */
function protectOther(dump: Dump, newestGood: Dump | undefined, { policy, now }: About): string[] {
  if (dump.at > now) return ['in the future'];
  if (isGood(dump)) return [];
  const days = formatDays(policy.retentionDays);
  if (dump.at.getTime() >= now.getTime() - policy.retentionDays * dayMs) return [`not older than ${days}`];
  // A set of an old fire may be under way only now.
  if (now.getTime() - (dump.updatedAt ?? now).getTime() < dayMs) return ['written less than a day ago'];
  return newestGood === undefined || newestGood.at <= dump.at ? ['no newer one is good'] : [];
}

/** Retention follows success: while backups fail, age must not empty the store. */
function findStandstill(newest: Dump | undefined, about: About): string | undefined {
  const { policy, now, isFailing, failedAt } = about;
  if (newest === undefined) return 'no good dump of it is there';
  if (isFailing || (failedAt !== undefined && failedAt > newest.at)) return 'its last backup failed';
  const ageMs = now.getTime() - newest.at.getTime();
  if (ageMs <= policy.retentionDays * dayMs) return undefined;
  return `its last good dump is ${formatDuration(ageMs)} old`;
}

function describeRemoval(
  dump: Dump,
  newest: Dump | undefined,
  { retentionDays, retention }: RetentionPolicy,
) {
  const age = `older than ${formatDays(retentionDays)}`;
  if (isGood(dump)) {
    const hasTiers = tierNames.some((tier) => retention?.[tier] !== undefined);
    return hasTiers ? `${age}, and in no tier` : age;
  }
  const state = dump.level === 'broken' ? `broken (${dump.fault})` : 'nothing says that it is whole';
  return `${state}, ${age}, and ${newest?.stamp} is good`;
}

function formatDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}
