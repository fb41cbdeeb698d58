// When a schedule fires: the same five fields and the same answers as launch-pad's, in UTC unless a zone is named. Pure.
//
// In a zone, a schedule of fixed times fires once for each of them on each local day: a time that the clocks leave out in
// spring fires at the first minute after, a time that comes twice in autumn fires at its first. A schedule of intervals (`*` or a
// step in minute or hour) follows elapsed time: it fires whenever the clocks show a time of its, and at no other.
import { dayMs, firstMatch, hasDays, lastMatch, minuteMs } from './calendar.ts';
import { parseFields, type Schedule } from './fields.ts';
import { type Stretch, stretchesBetween } from './zone.ts';

export type { Schedule } from './fields.ts';

/** Nothing further away is looked for, as in launch-pad. */
const horizonMs = 366 * dayMs;

/**
 * An anchor this little ahead is of a fire before the clock was put right: it is waited for, as clamping it would repeat that
 * fire. In milliseconds.
 */
const slackMs = 10 * minuteMs;

/** Why a text is no schedule is told in words that go on after it. */
export function parseSchedule(text: string): { schedule: Schedule } | { fault: string } {
  try {
    return { schedule: parseFields(text) };
  } catch (error) {
    if (error instanceof RangeError) return { fault: error.message };
    throw error;
  }
}

/** False if no year has a day that it could fire on, such as `0 0 30 2 *`. */
export function canFire(schedule: Schedule): boolean {
  return hasDays(schedule);
}

/** The latest fire in (after, until], a whole minute. Fires of more than 366 days before `until` are forgotten. */
export function latestFire(
  schedule: Schedule,
  { after, until, timeZone }: { after: Date; until: Date; timeZone?: string | undefined },
): Date | undefined {
  const to = until.getTime();
  const from = Math.max(after.getTime(), to - horizonMs);
  for (const { local, toFire } of localRanges(schedule, timeZone, { after: from, until: to }).reverse()) {
    const match = lastMatch(schedule, local.from, local.to);
    if (match !== undefined) return new Date(toFire(match));
  }
  return undefined;
}

/** The first fire after `after`, a whole minute; undefined if there is none within 366 days. */
export function nextFire(schedule: Schedule, after: Date, timeZone?: string): Date | undefined {
  const from = after.getTime();
  const until = Math.floor(from / minuteMs) * minuteMs + horizonMs;
  for (const { local, toFire } of localRanges(schedule, timeZone, { after: from, until })) {
    const match = firstMatch(schedule, local.from, local.to);
    if (match !== undefined) return new Date(toFire(match));
  }
  return undefined;
}

export type FireDecision =
  /** Nothing is known of earlier fires: the anchor becomes now, and nothing of the past is made up for. */
  | { kind: 'seed' }
  /** The last fire lies in the future, so that a clock was wrong: the anchor becomes now, told once. */
  | { kind: 'clamp' }
  /** All that was missed comes to this one. */
  | { kind: 'due'; fire: Date }
  | { kind: 'wait'; next: Date | undefined };

/** What is to be done about a schedule whose last fire was `anchor`. */
export function decideFire({
  schedule,
  timeZone,
  anchor,
  now,
}: {
  schedule: Schedule;
  timeZone?: string | undefined;
  anchor: Date | undefined;
  now: Date;
}): FireDecision {
  if (anchor === undefined) return { kind: 'seed' };
  if (isAhead(anchor, now)) return { kind: 'clamp' };
  const fire = latestFire(schedule, { after: anchor, until: now, timeZone });
  if (fire !== undefined) return { kind: 'due', fire };
  const after = anchor > now ? anchor : now;
  return { kind: 'wait', next: nextFire(schedule, after, timeZone) };
}

/** Too far ahead to be believed. */
export function isAhead(anchor: Date, now: Date): boolean {
  return anchor.getTime() > now.getTime() + slackMs;
}

/** A range of local times, and how they become instants. */
type LocalRange = { local: { from: number; to: number }; toFire: (local: number) => number };

/** The local times whose fires lie in (after, until], stretch by stretch, in order. */
function localRanges(
  schedule: Schedule,
  timeZone: string | undefined,
  { after, until }: { after: number; until: number },
): LocalRange[] {
  const stretches = stretchesBetween(timeZone, after, until);
  return stretches.flatMap((stretch, at) => {
    if (stretch.to <= after || stretch.from > until) return [];
    const begins = schedule.isInterval ? localStart(stretch) : localStartOnce(stretch, stretches[at - 1]);
    // What was left out before a stretch fires at its very start.
    const from = stretch.from > after ? begins : Math.max(begins, after + stretch.offset + 1);
    const to = Math.min(stretch.to - 1, until) + stretch.offset;
    const toFire = (local: number): number => Math.max(local - stretch.offset, stretch.from);
    return from > to ? [] : [{ local: { from, to }, toFire }];
  });
}

function localStart({ from, offset }: Stretch): number {
  return from + offset;
}

/** Where the stretch before it has ended on the clocks: behind a gap that is earlier, and in a repeated hour later. */
function localStartOnce(stretch: Stretch, before: Stretch | undefined): number {
  return before === undefined ? localStart(stretch) : stretch.from + before.offset;
}
