// The value of `--window SECONDS`. Pure.
import { UsageError } from '../errors.ts';

const defaultSeconds = 55;
/** Of one process; a timer starts the next one. */
const maxSeconds = 24 * 60 * 60;

/** Milliseconds; 0 is one try. */
export function parseWindow(value: unknown): number {
  if (value === undefined) return defaultSeconds * 1000;
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (seconds <= maxSeconds) return seconds * 1000;
  throw new UsageError(
    `cannot claim for ${JSON.stringify(value)}: --window takes whole seconds, from 0 to ${maxSeconds}`,
  );
}
