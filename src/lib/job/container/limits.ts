// What a gate's container may use, in ploy's own variables. A mig has no limits. Pure.
import type { Overrides } from '../../config/environment.ts';
import { parseSize } from './size.ts';
import type { ResourceLimits } from './spec.ts';

/** What cannot be read counts as not set, as in the original. */
export function planLimits(overrides: Overrides): ResourceLimits {
  const millis = toCount(overrides.PLOY_BUILDGATE_LIMIT_CPU_MILLIS);
  const memoryBytes = parseSize(overrides.PLOY_BUILDGATE_LIMIT_MEMORY_BYTES ?? '');
  const storageSize = overrides.PLOY_BUILDGATE_LIMIT_DISK_SPACE?.trim();
  return {
    ...(millis === undefined ? {} : { cpus: millis / 1000 }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(storageSize === undefined || storageSize === '' ? {} : { storageSize }),
  };
}

function toCount(text: string | undefined): number | undefined {
  const count = Number(text);
  return text !== undefined && Number.isSafeInteger(count) && count > 0 ? count : undefined;
}
