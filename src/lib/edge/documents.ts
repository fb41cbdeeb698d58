// What an edge remembers between two ticks. Never what is served: that is asked of Caddy and the balancer. `edge.json` is
// small, so that a tick with nothing to do is; the shards themselves are in `edge-shards.json`.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireRecordOf, requireText } from '../state/shape.ts';
import { isRoutable } from './route.ts';
import type { CheckedShard } from './shard.ts';

/** What was in force when a tick had nothing to complain of: while all of it is the same there is nothing to do. */
export type Settled = {
  /** Of the shards and settings, as one hash. */
  inputs: string;
  /** sha256 of Caddy's own text for the document of these inputs. */
  textHash: string;
  /** Stands for what the balancer serves; absent until a tick has found nothing to change. */
  stamp?: string;
  domains: number;
  backends: number;
};

/** A document that Caddy would not have: each further try would leave listeners behind in it. */
export type Refusal = { inputs: string; textHash: string; at: string; tries: number; message: string };

export type EdgeDocument = {
  /** sha256 over the sorted `key@etag` lines of the last listing. */
  listing: string;
  /** Of the shards as last read, by node. */
  etags: Readonly<Record<string, string>>;
  /** Of what the shards say, as one hash: writing the same again changes the listing and not this. */
  contents: string;
  /** Since when something in force is in no shard, by subject. */
  missingSince: Readonly<Record<string, string>>;
  settled: Settled | null;
  refused: Refusal | null;
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
  etags: {},
  contents: '',
  missingSince: {},
  settled: null,
  refused: null,
  lastReloadAt: null,
  applied: {},
  repairs: 0,
  caddy: null,
};

export const edgeDocument = defineDocument<EdgeDocument>({
  version: 1,
  parse: (raw) => {
    const { settled, refused, lastReloadAt, repairs, caddy } = raw;
    return {
      listing: requireText(raw, 'listing'),
      etags: requireRecordOf(raw, 'etags', isText),
      contents: requireText(raw, 'contents'),
      missingSince: requireRecordOf(raw, 'missingSince', isText),
      settled: isRecord(settled) ? parseSettled(settled) : null,
      refused: isRecord(refused) ? parseRefusal(refused) : null,
      lastReloadAt: isText(lastReloadAt) ? lastReloadAt : null,
      applied: requireRecordOf(raw, 'applied', isText),
      repairs: Number.isSafeInteger(repairs) ? (repairs as number) : 0,
      caddy: isRecord(caddy)
        ? { stamp: requireText(caddy, 'stamp'), closeDelay: caddy['closeDelay'] === true }
        : null,
    };
  },
});

/** Shards as last read, by node. */
export type EdgeShardsDocument = { shards: Readonly<Record<string, CheckedShard>> };

export const edgeShardsDocument = defineDocument<EdgeShardsDocument>({
  version: 1,
  parse: (raw) => ({ shards: requireRecordOf(raw, 'shards', isShard) }),
});

export function edgePath({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'edge.json');
}

export function edgeShardsPath({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'edge-shards.json');
}

function parseSettled(raw: Record<string, unknown>): Settled {
  const { stamp, domains, backends } = raw;
  return {
    inputs: requireText(raw, 'inputs'),
    textHash: requireText(raw, 'textHash'),
    ...(isText(stamp) ? { stamp } : {}),
    domains: Number(domains),
    backends: Number(backends),
  };
}

function parseRefusal(raw: Record<string, unknown>): Refusal {
  return {
    inputs: requireText(raw, 'inputs'),
    textHash: requireText(raw, 'textHash'),
    at: requireText(raw, 'at'),
    tries: Number(raw['tries']),
    message: requireText(raw, 'message'),
  };
}

function isBackend(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  const { domain, host, port, healthPath } = raw;
  const isPlace = isText(host) && Number.isInteger(port);
  return isPlace && isText(domain) && isRoutable(domain) && (healthPath === undefined || isText(healthPath));
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** As deep as a damaged file could mislead: what is in the lists was checked when it was read. */
function isShard(value: unknown): value is CheckedShard {
  if (!isRecord(value) || !isText(value['node']) || !isText(value['fingerprint'])) return false;
  const { backends, rejected } = value;
  return (
    Array.isArray(backends) &&
    backends.every(isBackend) &&
    Array.isArray(rejected) &&
    rejected.every(isRecord)
  );
}
