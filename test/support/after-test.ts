// Cleaning up after the test that is running. Vitest's own hook belongs to whichever test began last: of tests that run side by
// side, it clears what another one still uses.
import { TestRunner, onTestFinished as whenFinished } from 'vitest';

/** Throws where tests run side by side: they pass the hook of their own context. */
export const onTestFinished: typeof whenFinished = (clean, timeoutMs) => {
  if (TestRunner.getCurrentTest()?.concurrent === true) {
    throw new Error('a test that runs beside others passes its own onTestFinished');
  }
  whenFinished(clean, timeoutMs);
};
