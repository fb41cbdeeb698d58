// What a container uses, out of two of the engine's documents. Pure; a field that is not there counts as zero.
import type { ContainerUsage } from './types.ts';

/** Of the answer of `stats`. Engines whose kernel keeps no peak of the memory tell what is in use. */
export function parseUsage(stats: unknown): ContainerUsage {
  const memory = at(stats, 'memory_stats');
  return {
    cpuNs: toCount(at(at(at(stats, 'cpu_stats'), 'cpu_usage'), 'total_usage')),
    memoryBytes: toCount(at(memory, 'max_usage')) || toCount(at(memory, 'usage')),
  };
}

/** Of the answer of `inspect` with sizes. */
export function parseLayerBytes(sized: unknown): number {
  return toCount(at(sized, 'SizeRw'));
}

function at(raw: unknown, key: string): unknown {
  return typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>)[key] : undefined;
}

function toCount(raw: unknown): number {
  return typeof raw === 'number' && Number.isFinite(raw) && raw > 0
    ? Math.min(raw, Number.MAX_SAFE_INTEGER)
    : 0;
}
