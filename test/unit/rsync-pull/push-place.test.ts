import { expect, it } from 'vitest';
import { eventFileName } from '../../../src/lib/deploy-runner/event.ts';
import { groupResults } from '../../../src/lib/rsync-pull/push-place.ts';

const first = eventFileName('web-1', Date.parse('2026-11-29T23:59:59.999Z'), 'a');
const second = eventFileName('web-1', Date.parse('2026-11-30T00:00:00Z'), 'a');
const third = eventFileName('web-1', Date.parse('2026-11-30T12:00:00Z'), 'b');

it('sends all results to the one place', () => {
  expect(groupResults('control:/events/web-1/', [first, second])).toEqual([
    { place: 'control:/events/web-1/', names: [first, second], isDated: false },
  ]);
});

it('sends each to its day where the place says so', () => {
  expect(groupResults('control:/events/{date}/web-1/', [first, second, third])).toEqual([
    { place: 'control:/events/2026-11-29/web-1/', names: [first], isDated: true },
    { place: 'control:/events/2026-11-30/web-1/', names: [second, third], isDated: true },
  ]);
});

it('has nothing to do without results', () => {
  expect(groupResults('control:/events/web-1/', [])).toEqual([]);
});
