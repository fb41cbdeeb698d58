import { expect, it } from 'vitest';
import { planForgotten } from '../../../src/lib/jobs/retention.ts';

const now = new Date('2026-06-04T12:00:00.000Z');
const dayMs = 24 * 60 * 60_000;
const ended = (key: string, agoMs: number) => ({ key, endedAtMs: now.getTime() - agoMs });

it('keeps the last 200 jobs that have ended', () => {
  const jobs = Array.from({ length: 203 }, (_, index) => ended(`job-${index}`, index * 1000));
  expect(planForgotten(jobs, now)).toEqual(['job-200', 'job-201', 'job-202']);
});

it('keeps none for longer than seven days', () => {
  expect(planForgotten([ended('old', 7 * dayMs + 1), ended('week', 7 * dayMs)], now)).toEqual(['old']);
});

it('keeps what ended in the future, as after a clock that went back', () => {
  expect(planForgotten([ended('future', -dayMs)], now)).toEqual([]);
});

it('forgets nothing where there is nothing', () => {
  expect(planForgotten([], now)).toEqual([]);
});
