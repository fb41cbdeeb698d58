// What runs, what ran last, what failed, and what a person holds back. Pure.
import { findLastWord } from '../failure/plan.ts';
import type { FailureRecord } from '../failure/record.ts';
import type { Hold } from '../hold/holds.ts';
import type { LockHolder } from '../lock/holder.ts';
import type { RunRecord } from '../state/run-record.ts';
import { formatDuration } from '../time.ts';
import { type Finding, failure, ok, orOk, plural, warning } from './finding.ts';

/** `text`: somebody is named in the file of a lock that nobody holds. */
export type LockFacts = { name: string; held: boolean; holder?: LockHolder; text: boolean };

/** No run of ours holds a lock for longer but those of a job and of a backup; a person's `reeve lock` may. */
const longHoldMs = 30 * 60_000;
const longRuns = /^reeve (job run|backup)\b/;

export function judgeLocks(locks: readonly LockFacts[], now: Date): Finding[] {
  const held = locks.filter(({ held }) => held);
  const findings = held.map((lock) => judgeHolder(lock, now));
  const stale = locks.filter((lock) => !lock.held && lock.text).map(({ name }) => name);
  if (stale.length > 0)
    findings.push(ok(`free, although a run that was killed is named in: ${stale.join(', ')}`));
  return orOk(findings, ok('none is held'));
}

function judgeHolder({ name, holder }: LockFacts, now: Date): Finding {
  const where = `lock ${name}`;
  if (holder === undefined) return ok('held by another process', { where });
  const sinceMs = now.getTime() - Date.parse(holder.since ?? '');
  const since = Number.isNaN(sinceMs) ? '' : `, for ${formatDuration(Math.max(0, sinceMs))}`;
  const what = `held by pid ${holder.pid}, \`${holder.command}\`${since}`;
  if (!(sinceMs > longHoldMs) || longRuns.test(holder.command)) return ok(what, { where });
  return warning(what, { where, fix: `if it hangs, kill ${holder.pid}: the lock goes with it` });
}

/** A concern that should run by itself, and within what time it should have had a good run. */
export type ExpectedRun = {
  concern: string;
  /** What a person runs, where it is not called as the concern is. */
  command?: string;
  everyMs: number;
  /** What says why a run has failed, where another one has nothing left of it to say. */
  toldBy?: string;
};

export type RunFacts = {
  runs: readonly RunRecord[];
  expected: readonly ExpectedRun[];
  /** Concerns that the configuration has no use for. */
  off: ReadonlySet<string>;
  /** Timers are there that should see to it. */
  hasTimers: boolean;
  /** For how long the youngest of them has been there: after `init` and after a boot the first run is still to come. */
  timersForMs: number;
};

const ticks = 3;

export function judgeRuns(facts: RunFacts, now: Date): Finding[] {
  const { expected, off } = facts;
  const runs = facts.runs.filter(({ concern }) => !off.has(concern));
  const late = expected.flatMap((one) => judgeFreshness(one, facts, now));
  const failed = runs.flatMap((run) => judgeLastRun(run, facts));
  const good = runs.filter(({ lastGoodAt }) => lastGoodAt !== null).length;
  return orOk(
    [...late, ...failed],
    ok(runs.length === 0 ? 'nothing has run yet' : `${plural(good, 'concern')} in order`),
  );
}

function judgeFreshness(
  { concern, command = concern, everyMs }: ExpectedRun,
  { runs, hasTimers, timersForMs }: RunFacts,
  now: Date,
): Finding[] {
  const run = runs.find((other) => other.concern === concern);
  // A rollout may take longer than three ticks, and says so as it goes.
  if (run?.endedAt === null && now.getTime() < Date.parse(run.step?.deadlineAt ?? '')) return [];
  const lastGoodAt = run?.lastGoodAt;
  const ageMs = now.getTime() - Date.parse(lastGoodAt ?? '');
  if (Math.abs(ageMs) <= ticks * everyMs) return [];
  if (hasTimers && timersForMs <= ticks * everyMs) return [];
  const last = Number.isNaN(ageMs)
    ? `${concern} has had no good run yet`
    : `the last good run of ${concern} is ${describeAge(ageMs)}`;
  const what = `${last}, and one is due every ${formatDuration(everyMs)}`;
  if (!hasTimers) return [warning(what, { fix: `\`reeve ${command}\`, or install the units` })];
  return [failure(what, { fix: `journalctl -u reeve-${concern} -n 50 tells why` })];
}

function describeAge(ageMs: number): string {
  return ageMs < 0 ? `${formatDuration(-ageMs)} ahead of this clock` : `${formatDuration(ageMs)} old`;
}

function judgeLastRun(
  { concern, exitCode, error, runId }: RunRecord,
  { expected, hasTimers }: RunFacts,
): Finding[] {
  if (exitCode === null || [0, 2, 75].includes(exitCode)) return [];
  const what = `the last run of ${concern} ended with ${exitCode}${error === undefined ? '' : `: ${error}`}`;
  const journal = `journalctl -g ${runId} has the whole story, unless it was run by hand`;
  // What comes again by itself may be run at any time.
  const wanted = expected.find((one) => one.concern === concern);
  if (wanted === undefined) return [failure(what, { fix: journal })];
  const { command = concern, toldBy } = wanted;
  const why = toldBy === undefined ? `run \`reeve ${command}\`: it says why` : `\`${toldBy}\` says why`;
  const fix = `${why}${hasTimers ? `, and ${journal}` : ''}`;
  return [failure(what, { fix })];
}

const dayMs = 24 * 60 * 60_000;

/** Failures that no good run has followed yet, and hooks that have not told of one. */
export function judgeFailures(
  failures: readonly { record: FailureRecord; lastGoodAt: string | null | undefined }[],
  now: Date,
): Finding[] {
  const open = failures.filter(({ record, lastGoodAt }) => isOpen(record, lastGoodAt, now));
  const findings = open.flatMap(({ record }): Finding[] => {
    const { unit, result, status, count, lastAt, hook } = record;
    const last = findLastWord(record);
    const what = [
      `failed ${count === 1 ? 'once' : `${count} times`}, last at ${lastAt} (${result}`,
      `${status === null ? '' : `, status ${status}`})${last === undefined ? '' : `: ${last}`}`,
    ].join('');
    const told = hook?.error;
    return [
      failure(what, { where: unit, fix: `journalctl -u ${unit} -n 50` }),
      ...(told === undefined || told === null
        ? []
        : [warning(`nobody could be told: ${told}`, { where: unit, fix: 'correct hooks.failure' })]),
    ];
  });
  return orOk(findings, ok('none since the last good run'));
}

/** Where nobody keeps count of good runs, a failure is news for a day. */
function isOpen({ lastAt }: FailureRecord, lastGoodAt: string | null | undefined, now: Date): boolean {
  if (lastGoodAt === undefined) return now.getTime() - Date.parse(lastAt) < dayMs;
  return lastGoodAt === null || Date.parse(lastGoodAt) < Date.parse(lastAt);
}

export function judgeHolds(holds: readonly Hold[]): Finding[] {
  return orOk(
    holds.map(({ target, until, by, reason }) =>
      warning(`held until ${until} by ${by}: ${reason}`, { where: target, fix: '`reeve hold --end`' }),
    ),
    ok('none'),
  );
}
