// The value of `--wait SECONDS`.
import { UsageError } from '../errors.ts';

/** Nobody waits longer for a lock on purpose, and flock(1) takes no unbounded number. */
const maxWaitSeconds = 24 * 60 * 60;

/** Milliseconds; 0 where the flag was not given. */
export function parseWait(value: unknown): number {
  if (value === undefined) return 0;
  const seconds = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (!(seconds <= maxWaitSeconds)) {
    throw new UsageError(
      `cannot wait ${JSON.stringify(value)}: --wait takes seconds, from 0 to ${maxWaitSeconds}`,
    );
  }
  return Math.round(seconds * 1000);
}
