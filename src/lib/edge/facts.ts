// The world as an edge sees it in one tick, as one plain value. gather.ts fills it in, plan.ts reads it.
import type { EdgeDocument, StoredShard } from './documents.ts';
import type { Route } from './route.ts';
import type { Rejection } from './shard.ts';

/** What Caddy serves now. */
export type LiveCaddy =
  | { kind: 'read'; text: string; etag: string | undefined; textHash: string }
  | { kind: 'unreadable'; error: unknown };

export type EdgeFacts = {
  now: Date;
  balancer: 'caddy' | 'haproxy';
  /** Everything besides the shards that the document depends on, as one text. */
  settings: string;
  shards: readonly StoredShard[];
  /** What the shards ask for. */
  wanted: readonly Route[];
  rejected: readonly Rejection[];
  live: LiveCaddy;
  /** Addresses that their nodes say are draining; only looked up for what is missing. */
  draining: ReadonlySet<string>;
  memory: EdgeDocument;
};
