// The flags that every release has.
import { UsageError } from '../errors.ts';
import type { ReleaseOptions } from './run.ts';

const defaultWaitSeconds = 600;

/** Flags by commander's names. Throws UsageError. */
export function readReleaseOptions(options: Readonly<Record<string, unknown>>): ReleaseOptions {
  return {
    yes: options['yes'] === true,
    dryRun: options['dryRun'] === true,
    notify: options['notify'] !== false,
    waitMs: readWaitMs(options['wait']),
  };
}

function readWaitMs(wait: unknown): number | undefined {
  if (wait === undefined || wait === false) return undefined;
  if (wait === true) return defaultWaitSeconds * 1000;
  if (/^\d{1,6}$/.test(String(wait))) return Number(wait) * 1000;
  throw new UsageError(`--wait takes a number of seconds, not "${String(wait)}"`);
}
