// One failure among earlier ones: does it open an episode, and is somebody to be told. Pure.
import type { FailureRecord } from './record.ts';

export type FailureFacts = {
  now: Date;
  unit: string;
  result: string;
  status: string | null;
  invocationId: string | null;
  lastLines: readonly string[];
  previous: FailureRecord | undefined;
  /** When the unit's concern last had a good run; undefined where it keeps no record. */
  lastGoodAt: string | null | undefined;
};

export type FailurePlan = { record: FailureRecord; notify: boolean };

/** A unit that fails and recovers in turns is told of this often at most. */
const quietMs = 60 * 60_000;
/** A hook that failed is tried again after this. */
const retryMs = 5 * 60_000;

export function planFailure(facts: FailureFacts): FailurePlan {
  const { now, unit, result, status, invocationId, lastLines, previous } = facts;
  const at = now.toISOString();
  const earlier = previous !== undefined && isSameEpisode(facts, previous) ? previous : undefined;
  const record: FailureRecord = {
    unit,
    firstAt: earlier?.firstAt ?? at,
    lastAt: at,
    count: (earlier?.count ?? 0) + 1,
    result,
    status,
    invocationId,
    lastLines,
    notified: earlier?.notified ?? false,
    hook: previous?.hook ?? null,
  };
  return { record, notify: !record.notified && mayNotify(record.hook, now) };
}

/** Over once the concern has had a good run; where nobody keeps count of those, after an hour without failures. */
function isSameEpisode({ now, lastGoodAt }: FailureFacts, previous: FailureRecord): boolean {
  const sinceMs = now.getTime() - Date.parse(previous.lastAt);
  // Ahead of this clock it tells nothing: better one message too many.
  if (!(sinceMs >= 0)) return false;
  if (lastGoodAt === undefined) return sinceMs < quietMs;
  return lastGoodAt === null || Date.parse(lastGoodAt) < Date.parse(previous.firstAt);
}

function mayNotify(hook: FailureRecord['hook'], now: Date): boolean {
  if (hook === null) return true;
  const sinceMs = now.getTime() - Date.parse(hook.triedAt);
  return sinceMs < 0 || sinceMs >= (hook.error === null ? quietMs : retryMs);
}

/** The concern that a unit of ours runs: `reeve-job@ID.service` runs `job@ID`. */
export function concernOf(unit: string): string | undefined {
  return /^reeve-(.+)\.[a-z]+$/.exec(unit)?.[1];
}

/** `reeve-backup.service on web-1 failed (exit-code, status 1), 3 times since ...: what it said last`. */
export function describeFailure(record: FailureRecord, host: string): string {
  const { unit, result, status, count, firstAt } = record;
  const how = status === null ? result : `${result}, status ${status}`;
  const often = count === 1 ? '' : `, ${count} times since ${firstAt}`;
  const last = findLastWord(record);
  return `${unit} on ${host} failed (${how})${often}${last === undefined ? '' : `: ${last}`}`;
}

/**
 * The last line of the failed run that is the program's own, where there is one. systemd's follow it and say only that it
 * failed, and a new run may have begun since.
 */
export function findLastWord({
  unit,
  lastLines: lines,
}: Pick<FailureRecord, 'unit' | 'lastLines'>): string | undefined {
  const endAt = lines.findLastIndex((line) => line.startsWith(`${unit}: Failed with result `));
  const ended = endAt === -1 ? lines : lines.slice(0, endAt + 1);
  const run = ended.slice(ended.findLastIndex((line) => line.startsWith(`Starting ${unit} `)) + 1);
  return run.findLast((line) => !isSystemds(line, unit)) ?? ended.at(-1);
}

function isSystemds(line: string, unit: string): boolean {
  if (line.startsWith(`${unit}: `)) return true;
  return ['Started', 'Stopping', 'Stopped', 'Finished', 'Failed to start'].some((word) =>
    line.startsWith(`${word} ${unit} `),
  );
}
