// The state files that reconcile owns, and their shapes. A file that is lost is rebuilt from labels and live containers.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { isPort } from '../port.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireRecordOf, requireText } from '../state/shape.ts';
import type {
  FailureRecord,
  PublishedBackend,
  PublishedShard,
  PublishedShards,
  ReplicaRecord,
  RolloutRecord,
  ServiceRecord,
} from './facts.ts';

export const stateFiles = (paths: Paths) => ({
  rollouts: join(paths.stateDir, 'rollouts.json'),
  ports: join(paths.stateDir, 'ports.json'),
  shards: join(paths.stateDir, 'shards.json'),
  ownership: join(paths.stateDir, 'ownership.json'),
  cron: join(paths.stateDir, 'cron.json'),
  ends: join(paths.stateDir, 'ends.json'),
});

/** Ports by `<project>/<service>#<index>`. */
export type PortsDocument = { ports: Readonly<Record<string, number>> };
export const portsDocument = defineDocument<PortsDocument>({
  version: 1,
  parse: (raw) => ({ ports: requireRecordOf(raw, 'ports', isPort) }),
});

/** Edges that a shard has been written for, with what was written last. */
export type ShardsDocument = { edges: PublishedShards };
export const shardsDocument = defineDocument<ShardsDocument>({
  version: 1,
  parse: (raw) => ({ edges: requireRecordOf(raw, 'edges', isPublishedShard) }),
});

function isPublishedShard(value: unknown): value is PublishedShard {
  if (!hasTexts(value, ['fingerprint', 'lastWriteAt'])) return false;
  const { backends = [], left = [], holders = {}, unseen = false } = value as Record<string, unknown>;
  return (
    isBackendList(backends) &&
    isBackendList(left) &&
    left.every((entry) => hasTexts(entry, ['at'])) &&
    isRecord(holders) &&
    hasTexts(holders, Object.keys(holders)) &&
    typeof unseen === 'boolean'
  );
}

function isBackendList(value: unknown): value is PublishedBackend[] {
  return (
    Array.isArray(value) && value.every((entry) => hasTexts(entry, ['domain']) && isPort(entry['hostPort']))
  );
}

/** Containers of launch-pad's agent that became ours when it was replaced. Written once. */
export type OwnershipDocument = { adoptedAt: string; containers: readonly string[] };
export const ownershipDocument = defineDocument<OwnershipDocument>({
  version: 1,
  parse: (raw) => {
    const containers = isRecord(raw) ? raw['containers'] : undefined;
    if (!Array.isArray(containers) || !containers.every((id) => typeof id === 'string')) {
      throw new TypeError('containers is no list of ids');
    }
    return { adoptedAt: requireText(raw, 'adoptedAt'), containers };
  },
});

export type CronDocument = {
  /** Last fires of schedules, epoch milliseconds by `<project>/<service>`. */
  fires: Readonly<Record<string, number>>;
  /** The schedule that each was of; not known of what was imported. */
  schedules?: Readonly<Record<string, string>>;
};
export const cronDocument = defineDocument<CronDocument>({
  version: 1,
  parse: (raw) => {
    const isInstant = (value: unknown): value is number => Number.isSafeInteger(value);
    const isText = (value: unknown): value is string => typeof value === 'string';
    const fires = requireRecordOf(raw, 'fires', isInstant);
    const hasSchedules = isRecord(raw) && raw['schedules'] !== undefined;
    return hasSchedules ? { fires, schedules: requireRecordOf(raw, 'schedules', isText) } : { fires };
  },
});

/** When one-off runs have ended, by the ids of their containers. */
export type EndsDocument = { ends: Readonly<Record<string, string>> };
export const endsDocument = defineDocument<EndsDocument>({
  version: 1,
  parse: (raw) => ({
    ends: requireRecordOf(raw, 'ends', (value): value is string => typeof value === 'string'),
  }),
});

export const rolloutsDocument = defineDocument<RolloutRecord>({
  version: 1,
  parse: (raw) => ({ services: requireRecordOf(raw, 'services', isServiceRecord) }),
});

function isServiceRecord(value: unknown): value is ServiceRecord {
  if (!isRecord(value) || !isRecord(value['replicas']) || !isRecord(value['failures'])) return false;
  return (
    Object.values(value['replicas']).every(isReplicaRecord) &&
    Object.values(value['failures']).every(isFailureRecord)
  );
}

function isReplicaRecord(value: unknown): value is ReplicaRecord {
  if (!hasTexts(value, ['phase', 'since'])) return false;
  switch (value['phase']) {
    case 'starting':
      return hasTexts(value, ['deadline', 'release']) && typeof value['attempt'] === 'number';
    case 'draining':
      return (
        hasTexts(value, ['reason']) &&
        (value['drainUntil'] === null || hasTexts(value, ['drainUntil'])) &&
        (value['acknowledgedAt'] === undefined || hasTexts(value, ['acknowledgedAt']))
      );
    case 'stopping':
      return (
        hasTexts(value, ['killAt', 'reason']) && ['remove', 'keep'].includes(String(value['afterwards']))
      );
    default:
      return false;
  }
}

function isFailureRecord(value: unknown): value is FailureRecord {
  return (
    hasTexts(value, ['lastAt', 'nextTryAt', 'error']) &&
    Number.isInteger((value as Record<string, unknown>)['attempts'])
  );
}

function hasTexts(value: unknown, names: readonly string[]): value is Record<string, string> {
  return isRecord(value) && names.every((name) => typeof value[name] === 'string');
}
