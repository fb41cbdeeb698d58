// The grammar of a schedule: exactly launch-pad's.
import { expect, it } from 'vitest';
import { canFire, parseSchedule, type Schedule } from '../../../src/lib/schedule/schedule.ts';

function require(text: string): Schedule {
  const parsed = parseSchedule(text);
  if ('fault' in parsed) throw new Error(parsed.fault);
  return parsed.schedule;
}

it.each([
  '* * * * *',
  '*/5 * * * *',
  '0 0 * * *',
  '15 14 1 * *',
  '0 22 * * 1-5',
  '23 0-20/2 * * *',
  '5 4 * * 0',
  '5 4 * * 7',
  '0,30 9-17 * * 1,3,5',
  '10-40/10 */2 1-15 1,6,12 *',
  '  0   3 * *\t* ',
  '05 03 01 01 *',
])('takes %j (L70)', (text) => {
  expect(parseSchedule(text)).toHaveProperty('schedule');
});

it.each([
  ['', 'it needs five fields: minute, hour, day of month, month, day of week'],
  ['* * * *', 'it needs five fields: minute, hour, day of month, month, day of week'],
  ['* * * * * *', 'it needs five fields: minute, hour, day of month, month, day of week'],
  ['60 * * * *', 'minute 60 is not in 0 to 59'],
  ['* 24 * * *', 'hour 24 is not in 0 to 23'],
  ['* * 0 * *', 'day of month 0 is not in 1 to 31'],
  ['* * 32 * *', 'day of month 32 is not in 1 to 31'],
  ['* * * 0 *', 'month 0 is not in 1 to 12'],
  ['* * * 13 *', 'month 13 is not in 1 to 12'],
  ['* * * * 8', 'day of week 8 is not in 0 to 7'],
  ['a * * * *', 'minute "a" is no number'],
  ['1- * * * *', 'minute "" is no number'],
  ['-1 * * * *', 'minute "" is no number'],
  ['1,,2 * * * *', 'minute "" is no number'],
  ['1.5 * * * *', 'minute "1.5" is no number'],
  ['+1 * * * *', 'minute "+1" is no number'],
  ['1-2-3 * * * *', 'minute "1-2-3" is no range'],
  ['*-5 * * * *', 'minute "*" is no number'],
  ['5-1 * * * *', 'minute "5-1" is a range that ends before it begins'],
  ['* 22-2 * * *', 'hour "22-2" is a range that ends before it begins'],
  ['* * * * 6-0', 'day of week "6-0" is a range that ends before it begins'],
  ['*/0 * * * *', 'minute "*/0" has no step of at least 1'],
  ['*/x * * * *', 'minute "*/x" has no step of at least 1'],
  ['*/ * * * *', 'minute "*/" has no step of at least 1'],
  ['*/5/2 * * * *', 'minute "*/5/2" has two steps'],
  ['/5 * * * *', 'minute "" is no number'],
  ['* * * JAN *', 'month "JAN" is no number'],
  ['* * * * MON', 'day of week "MON" is no number'],
  ['@daily', 'it needs five fields: minute, hour, day of month, month, day of week'],
])('refuses %j and says why (L70)', (text, fault) => {
  expect(parseSchedule(text)).toEqual({ fault });
});

it.each([
  ['5/20 * * * *', [5, 25, 45]],
  ['*/25 * * * *', [0, 25, 50]],
  ['10-40/10 * * * *', [10, 20, 30, 40]],
  ['50/60 * * * *', [50]],
  ['3,1,2,2-4 * * * *', [1, 2, 3, 4]],
])('reads the minutes of %j as %j (L70)', (text, minutes) => {
  expect(require(text).minutes).toEqual(minutes);
});

it.each([
  ['0 0 * * 7', [0]],
  ['0 0 * * 5-7', [0, 5, 6]],
  ['0 0 * * */2', [0, 2, 4, 6]],
  ['0 0 * * 1/2', [0, 1, 3, 5]],
])('takes day 7 of %j for Sunday: %j (L70)', (text, days) => {
  expect([...require(text).daysOfWeek].sort()).toEqual(days);
});

it.each([
  ['0 0 1 * *', false],
  ['0 0 * * 1', false],
  ['0 0 1 * 1', true],
  ['0 0 */2 * 1', true],
  ['0 0 1 * */2', true],
  ['0 0 *,1 * 1', true],
])('either kind of day is enough in %j: %j, as only a bare * restricts nothing (L70)', (text, either) => {
  expect(require(text).eitherDay).toBe(either);
});

it.each([
  ['30 2 * * *', false],
  ['0,30 2-4 * * *', false],
  ['0-59 2 * * *', false],
  ['* 2 * * *', true],
  ['0 * * * *', true],
  ['*/30 * * * *', true],
  ['5/20 2 * * *', true],
  ['0 0-23/2 * * *', true],
  ['30 2 */2 * *', false],
])('%j is a schedule of intervals: %j (R20)', (text, interval) => {
  expect(require(text).isInterval).toBe(interval);
});

it.each([
  ['0 0 30 2 *', false],
  ['0 0 31 4,6,9,11 *', false],
  ['0 0 30,31 2 *', false],
  ['0 0 29 2 *', true],
  ['0 0 31 4,5 *', true],
  ['0 0 30 2 1', true],
  ['0 0 30 2 */2', true],
  ['* * * * *', true],
])('%j can fire: %j (L70)', (text, fires) => {
  expect(canFire(require(text))).toBe(fires);
});
