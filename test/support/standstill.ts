// When this process could not run, as the machine stood still: what measures a program beside it leaves that time out.
import { onTestFinished } from './after-test.ts';

export type Standstill = {
  /** Milliseconds of the span, by `Date.now()`. */
  within(fromMs: number, toMs: number): number;
};

const tickMs = 20;
/** A timer that is late by less has only waited for its turn. */
const leastMs = 200;

/** From now to the end of the test. Whoever measures by it does nothing long at one go meanwhile. */
export function watchStandstill(): Standstill {
  const stills: { fromMs: number; toMs: number }[] = [];
  let lastMs = Date.now();
  const look = (): void => {
    const nowMs = Date.now();
    if (nowMs - lastMs >= leastMs) stills.push({ fromMs: lastMs, toMs: nowMs });
    lastMs = nowMs;
  };
  const timer = setInterval(look, tickMs);
  onTestFinished(() => clearInterval(timer));
  return {
    within: (fromMs, toMs) => {
      look();
      const parts = stills.map((one) => Math.min(toMs, one.toMs) - Math.max(fromMs, one.fromMs));
      return parts.reduce((sum, ms) => sum + Math.max(0, ms), 0);
    },
  };
}
