// What a container has used, out of two of the engine's documents. Pure; a field that is not there counts as zero.
import type { ContainerUsage } from './types.ts';

/** Of the answers of `stats` and of `inspect` with sizes. Of a container that has ended, engines have no memory to tell. */
export function parseUsage(stats: unknown, sized: unknown): ContainerUsage {
  const memory = at(stats, 'memory_stats');
  return {
    cpuNs: toCount(at(at(at(stats, 'cpu_stats'), 'cpu_usage'), 'total_usage')),
    memoryBytes: toCount(at(memory, 'max_usage')) || toCount(at(memory, 'usage')),
    layerBytes: toCount(at(sized, 'SizeRw')),
  };
}

function at(raw: unknown, key: string): unknown {
  return typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>)[key] : undefined;
}

function toCount(raw: unknown): number {
  return typeof raw === 'number' && Number.isFinite(raw) && raw > 0
    ? Math.min(raw, Number.MAX_SAFE_INTEGER)
    : 0;
}
