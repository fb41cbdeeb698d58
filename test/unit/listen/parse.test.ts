import { describe, expect, it } from 'vitest';
import { parseWindow } from '../../../src/lib/listen/parse.ts';

describe('--window', () => {
  it.each([
    [undefined, 20_000],
    ['1', 1_000],
    ['900', 900_000],
    ['86400', 86_400_000],
  ])('%s is %i ms', (value, ms) => {
    expect(parseWindow(value)).toBe(ms);
  });

  it.each(['0', '-1', '1.5', '15m', '', 'x', '86401', true])('refuses %j', (value) => {
    expect(() => parseWindow(value)).toThrow(
      `cannot listen for ${JSON.stringify(value)}: --window takes whole seconds, from 1 to 86400`,
    );
  });
});
