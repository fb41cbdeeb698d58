// Whether a node may be called alive: the concern that keeps it must be. Pure.
import { formatDuration } from '../time.ts';

/** What the concern's record tells of its last run. */
export type LastRun = {
  runId: string;
  startedAt: string;
  endedAt: string | null;
  step?: { name: string; startedAt: string; deadlineAt: string };
  /** When any of its runs ended last. */
  lastEndedAt: string | null;
};

export type LivenessFacts = {
  now: Date;
  /** The concern that keeps the node at its desired state. */
  concern: string;
  tickMs: number;
  record: LastRun | undefined;
  /** Somebody holds the concern's lock. */
  lockHeld: boolean;
};

export type Liveness = { alive: true } | { alive: false; why: string };

/** One tick may be late and one may fail to start; after the third something is wrong. */
const ticks = 3;

export function planLiveness(facts: LivenessFacts): Liveness {
  const { record, concern } = facts;
  if (record === undefined) return dead(`${concern} has never run`);
  return record.endedAt === null && facts.lockHeld
    ? judgeRunning(facts, record)
    : judgeResting(facts, record);
}

/** A busy run tells again and again what it does, each time with an instant by which it will tell more. */
function judgeRunning({ now, concern }: LivenessFacts, { step, runId, startedAt }: LastRun): Liveness {
  if (step === undefined) return dead(`run ${runId} of ${concern} does not tell what it does`);
  const from = Date.parse(step.startedAt);
  const lateMs = now.getTime() - Date.parse(step.deadlineAt);
  // A clock that was set back would give the step all the time it went back by.
  const isAhead = now.getTime() < from - (Date.parse(step.deadlineAt) - from);
  if (lateMs < 0 && !isAhead) return { alive: true };
  const age = formatDuration(Math.max(0, now.getTime() - Date.parse(startedAt)));
  const since = isAhead ? 'begun ahead of this clock' : `heard of last ${ago(from, now)}`;
  return dead(`run ${runId} of ${concern}, ${age} old, is stuck in "${step.name}", ${since}`);
}

function judgeResting({ now, concern, tickMs }: LivenessFacts, { lastEndedAt }: LastRun): Liveness {
  if (lastEndedAt === null) return dead(`${concern} has never come to an end`);
  const endedMs = Date.parse(lastEndedAt);
  const windowMs = ticks * tickMs;
  if (Math.abs(now.getTime() - endedMs) <= windowMs) return { alive: true };
  return dead(`${concern} last ended ${ago(endedMs, now)}, and ${formatDuration(windowMs)} are allowed`);
}

function ago(thenMs: number, now: Date): string {
  const ageMs = now.getTime() - thenMs;
  return ageMs < 0 ? `${formatDuration(-ageMs)} ahead of this clock` : `${formatDuration(ageMs)} ago`;
}

function dead(why: string): Liveness {
  return { alive: false, why };
}
