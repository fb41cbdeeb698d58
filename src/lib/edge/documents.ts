// `edge.json`: what an edge remembers between two ticks. Never what is served: that is asked of Caddy and the balancer.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireRecordOf, requireText } from '../state/shape.ts';
import type { CheckedShard } from './shard.ts';

/** A shard as last read, so that an unchanged one is not fetched again. */
export type StoredShard = CheckedShard & { etag: string };

export type EdgeDocument = {
  /** sha256 over the sorted `key@etag` lines of the last listing. */
  listing: string;
  /** By node. */
  shards: Readonly<Record<string, StoredShard>>;
  /** Since when something in force is in no shard, by subject. */
  missingSince: Readonly<Record<string, string>>;
  /** That this text of Caddy's (by its sha256) is the document for these shards and settings. */
  known: { inputs: string; textHash: string } | null;
  /** When Caddy last took a document from us. */
  lastReloadAt: string | null;
  /** Fingerprints of the shards in force, by node. */
  applied: Readonly<Record<string, string>>;
  /** Times that Caddy was found without what it had been given. */
  repairs: number;
  /** What the installed Caddy can do, as long as its file is the same. */
  caddy: { stamp: string; closeDelay: boolean } | null;
};

export const emptyEdge: EdgeDocument = {
  listing: '',
  shards: {},
  missingSince: {},
  known: null,
  lastReloadAt: null,
  applied: {},
  repairs: 0,
  caddy: null,
};

export const edgeDocument = defineDocument<EdgeDocument>({
  version: 1,
  parse: (raw) => {
    const { known, lastReloadAt, repairs, caddy } = raw;
    return {
      listing: requireText(raw, 'listing'),
      shards: requireRecordOf(raw, 'shards', isStoredShard),
      missingSince: requireRecordOf(raw, 'missingSince', isText),
      known: isRecord(known)
        ? { inputs: requireText(known, 'inputs'), textHash: requireText(known, 'textHash') }
        : null,
      lastReloadAt: isText(lastReloadAt) ? lastReloadAt : null,
      applied: requireRecordOf(raw, 'applied', isText),
      repairs: Number.isSafeInteger(repairs) ? (repairs as number) : 0,
      caddy: isRecord(caddy)
        ? { stamp: requireText(caddy, 'stamp'), closeDelay: caddy['closeDelay'] === true }
        : null,
    };
  },
});

export function edgePath({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'edge.json');
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** As deep as a damaged file could mislead: what is in the lists was checked when it was read. */
function isStoredShard(value: unknown): value is StoredShard {
  return (
    isRecord(value) &&
    isText(value['etag']) &&
    isText(value['node']) &&
    isText(value['fingerprint']) &&
    Array.isArray(value['backends']) &&
    value['backends'].every(
      (backend) => isRecord(backend) && isText(backend['domain']) && isText(backend['host']),
    ) &&
    Array.isArray(value['rejected']) &&
    value['rejected'].every(isRecord)
  );
}
