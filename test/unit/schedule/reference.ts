// What a schedule means, minute by minute: slow, and written without a look at how the evaluator does it.
import type { Schedule } from '../../../src/lib/schedule/schedule.ts';

const minuteMs = 60_000;

/** Every fire in (after, until], from a walk over all minutes of the clocks in the zone. */
export function walkFires(schedule: Schedule, { after, until, timeZone }: Window): number[] {
  const clock = createClock(timeZone);
  const fires: number[] = [];
  const shown = new Set<number>();
  let last: number | undefined;
  // A time that comes twice comes within a few hours: those before the window have been shown, too.
  const begin = Math.floor(after / minuteMs) * minuteMs - 26 * 60 * minuteMs;
  for (let instant = begin; instant <= until; instant += minuteMs) {
    const local = clock(instant);
    const passed = schedule.isInterval ? [local] : newlyPassed(last, local, shown);
    if (instant > after && passed.some((time) => matches(schedule, time))) fires.push(instant);
    for (const time of passed) shown.add(time);
    last = local;
  }
  return fires;
}

type Window = { after: number; until: number; timeZone: string };

/** Times of a clock that have come, or been left out, since it was looked at a minute before; each is new only once. */
function newlyPassed(last: number | undefined, local: number, shown: ReadonlySet<number>): number[] {
  const passed: number[] = [];
  for (let time = last === undefined ? local : last + minuteMs; time < local; time += minuteMs)
    passed.push(time);
  return [...passed, local].filter((time) => !shown.has(time));
}

function matches(schedule: Schedule, local: number): boolean {
  const date = new Date(local);
  const ofMonth = schedule.daysOfMonth.has(date.getUTCDate());
  const ofWeek = schedule.daysOfWeek.has(date.getUTCDay());
  return (
    schedule.minutes.includes(date.getUTCMinutes()) &&
    schedule.hours.includes(date.getUTCHours()) &&
    schedule.months.has(date.getUTCMonth() + 1) &&
    (schedule.eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek)
  );
}

/** What the clocks show, as if it were UTC. */
function createClock(timeZone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return (instant) => Date.parse(`${format.format(instant).replace(' ', 'T')}Z`);
}
