import { describe, expect, it } from 'vitest';
import { isRenewalDue } from '../../../src/lib/bootstrap/plan.ts';

const day = (count: number): Date => new Date(Date.UTC(2026, 0, 1 + count));

describe('a certificate is renewed', () => {
  it.each([
    ['not at the beginning of a year', 365, 0, false],
    ['not 30 days before its end', 365, 335, false],
    ['in its last 30 days', 365, 336, true],
    ['after its end', 365, 400, true],
    ['not in the second third of a short life', 9, 6, false],
    ['in the last third of a short life', 9, 7, true],
  ])('%s', (_, life, now, due) => {
    expect(isRenewalDue({ from: day(0), to: day(life) }, day(now))).toBe(due);
  });
});
