// Where a schedule matches on a calendar without time zones: instants are milliseconds of a clock on a wall, counted as if it
// showed UTC. Days that do not match are skipped whole, so that no gap is walked minute by minute. Pure.
import type { Schedule } from './fields.ts';

export const minuteMs = 60_000;
export const dayMs = 24 * 60 * minuteMs;

/** The latest matching minute in [from, to]. */
export function lastMatch(schedule: Schedule, from: number, to: number): number | undefined {
  for (let day = startOfDay(to); day + dayMs > from; day -= dayMs) {
    if (!matchesDay(schedule, day)) continue;
    const minute = lastMinute(schedule, Math.floor((Math.min(to, day + dayMs - 1) - day) / minuteMs));
    const match = minute === undefined ? undefined : day + minute * minuteMs;
    if (match !== undefined) return match >= from ? match : undefined;
  }
  return undefined;
}

/** The first matching minute in [from, to]. */
export function firstMatch(schedule: Schedule, from: number, to: number): number | undefined {
  for (let day = startOfDay(from); day <= to; day += dayMs) {
    if (!matchesDay(schedule, day)) continue;
    const minute = firstMinute(schedule, Math.ceil((Math.max(from, day) - day) / minuteMs));
    const match = minute === undefined ? undefined : day + minute * minuteMs;
    if (match !== undefined) return match <= to ? match : undefined;
  }
  return undefined;
}

/** Days of a month at the most, February's leap day among them. */
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** False if no year has such a day, as the 30th of February. */
export function hasDays({ eitherDay, months, daysOfMonth }: Schedule): boolean {
  if (eitherDay) return true;
  const first = Math.min(...daysOfMonth);
  return [...months].some((month) => first <= (longestMonths[month - 1] ?? 0));
}

function startOfDay(instant: number): number {
  return Math.floor(instant / dayMs) * dayMs;
}

function matchesDay({ months, daysOfMonth, daysOfWeek, eitherDay }: Schedule, day: number): boolean {
  const date = new Date(day);
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const ofMonth = daysOfMonth.has(date.getUTCDate());
  const ofWeek = daysOfWeek.has(date.getUTCDay());
  return eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
}

/** The latest matching minute of a day up to this one. */
function lastMinute({ hours, minutes }: Schedule, limit: number): number | undefined {
  const hour = hours.findLast((value) => value * 60 + (minutes[0] ?? 0) <= limit);
  if (hour === undefined) return undefined;
  const minute = minutes.findLast((value) => hour * 60 + value <= limit);
  return hour * 60 + (minute ?? 0);
}

/** The first matching minute of a day from this one on. */
function firstMinute({ hours, minutes }: Schedule, limit: number): number | undefined {
  const hour = hours.find((value) => value * 60 + (minutes.at(-1) ?? 0) >= limit);
  if (hour === undefined) return undefined;
  const minute = minutes.find((value) => hour * 60 + value >= limit);
  return hour * 60 + (minute ?? 0);
}
