// When a time zone changes its offset from UTC. Asking the platform is slow, so that offsets are asked for once a week of a
// zone's time, and the minute of a change is searched for where two weeks differ. Pure, but for what it remembers.
import { minuteMs } from './calendar.ts';

/** A stretch of time with one offset. Local time is UTC plus offset. */
export type Stretch = { from: number; to: number; offset: number };

type Zone = { format: Intl.DateTimeFormat; offsets: Map<number, number>; changes: Map<number, number> };

const weekMs = 7 * 24 * 60 * minuteMs;
const zones = new Map<string, Zone>();

/** Stretches that cover [from, to], in order, beginning a week or more before; the first and the last are cut at a week. */
export function stretchesBetween(timeZone: string | undefined, from: number, to: number): Stretch[] {
  if (timeZone === undefined) return [{ from: from - weekMs, to: to + weekMs, offset: 0 }];
  const zone = openZone(timeZone);
  const firstWeek = Math.floor(from / weekMs) - 1;
  const lastWeek = Math.floor(to / weekMs) + 1;
  const stretches: Stretch[] = [];
  let stretch = { from: firstWeek * weekMs, to: 0, offset: offsetOf(zone, firstWeek) };
  for (let week = firstWeek; week < lastWeek; week += 1) {
    const offset = offsetOf(zone, week + 1);
    if (offset === stretch.offset) continue;
    const change = changeOf(zone, week);
    stretches.push({ ...stretch, to: change });
    stretch = { from: change, to: 0, offset };
  }
  return [...stretches, { ...stretch, to: lastWeek * weekMs }];
}

function openZone(timeZone: string): Zone {
  const known = zones.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  const zone = { format, offsets: new Map<number, number>(), changes: new Map<number, number>() };
  zones.set(timeZone, zone);
  return zone;
}

function offsetOf(zone: Zone, week: number): number {
  const known = zone.offsets.get(week);
  if (known !== undefined) return known;
  const offset = offsetAt(zone, week * weekMs);
  zone.offsets.set(week, offset);
  return offset;
}

/** The first minute of the new offset. No zone changes twice within a week. */
function changeOf(zone: Zone, week: number): number {
  const known = zone.changes.get(week);
  if (known !== undefined) return known;
  const before = offsetOf(zone, week);
  let low = (week * weekMs) / minuteMs;
  let high = ((week + 1) * weekMs) / minuteMs;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(zone, middle * minuteMs) === before) low = middle;
    else high = middle;
  }
  zone.changes.set(week, high * minuteMs);
  return high * minuteMs;
}

/** The platform says `GMT`, `GMT+02:00` or `GMT-03:30`; seconds are of zones of long ago, and left out. */
function offsetAt({ format }: Zone, instant: number): number {
  const name = format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT';
  const [, sign, hours, minutes] = /GMT([+-])(\d+):(\d+)/.exec(name) ?? ['', '+', '0', '0'];
  const size = (Number(hours) * 60 + Number(minutes)) * minuteMs;
  return sign === '-' ? -size : size;
}
