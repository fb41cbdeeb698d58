import { expect, it } from 'vitest';
import { parseWindow } from '../../../src/lib/claim/parse.ts';

it('claims for 55 seconds where nothing is said, once for 0', () => {
  expect([undefined, '0', '90'].map(parseWindow)).toEqual([55_000, 0, 90_000]);
});

it.each(['', '-1', '1.5', 'x', '86401'])('refuses a window of %j', (value) => {
  expect(() => parseWindow(value)).toThrow('--window takes whole seconds, from 0 to 86400');
});
