import { expect, it } from 'vitest';
import { findNews, summarizeStrays } from '../../../src/lib/actions/strays.ts';

const stray = (name: string, reason = 'it is a directory') => ({ name, reason });

it('keeps the first hundred, and how many there are', () => {
  const strays = Array.from({ length: 150 }, (_, index) => stray(`${index}`.repeat(200)));
  const summary = summarizeStrays(strays);
  expect(summary.count).toBe(150);
  expect(summary.entries).toHaveLength(100);
  expect(Math.max(...summary.entries.map(({ name }) => name.length))).toBe(300);
});

it('finds what nobody has been told of', () => {
  const told = summarizeStrays([stray('a'), stray('b')]);
  expect(findNews(summarizeStrays([stray('a')]), told)).toEqual([]);
  expect(findNews(summarizeStrays([stray('a'), stray('c')]), told)).toEqual([stray('c')]);
  expect(findNews(summarizeStrays([stray('a', 'it is too large')]), told)).toEqual([
    stray('a', 'it is too large'),
  ]);
});
