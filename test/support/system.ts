// What the system tests share: where they can run.
import { describe, inject } from 'vitest';

/** Skipped only where no machine can be booted at all, which the set-up tells. */
export const describeHost = describe.skipIf(inject('hostProblem') !== '');
