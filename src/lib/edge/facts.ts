// The world as an edge sees it in one tick, as plain values. gather.ts fills them in, plan.ts reads them.
import type { EdgeDocument } from './documents.ts';
import type { Route } from './route.ts';
import type { CheckedShard, Rejection } from './shard.ts';

/** What Caddy serves now. */
export type LiveCaddy =
  | { kind: 'read'; text: string; etag: string | undefined; textHash: string }
  | { kind: 'unreadable'; error: unknown };

/** What tells whether anything is different, without looking at any route. */
export type Glance = {
  now: Date;
  /** Everything besides the shards that the routes in force depend on, as one text. */
  settings: string;
  /** Of what the shards say, as one hash. */
  contents: string;
  /** The store has no shard any more. */
  gone: boolean;
  live: LiveCaddy;
  /** Stands for what the balancer serves; undefined where it cannot be asked. */
  stamp: string | undefined;
  memory: EdgeDocument;
};

export type EdgeFacts = Glance & {
  balancer: 'caddy' | 'haproxy';
  shards: readonly CheckedShard[];
  /** They are on disk already. */
  isRemembered: boolean;
  /** What the shards ask for. */
  wanted: readonly Route[];
  rejected: readonly Rejection[];
  /** Paths of the probes in force besides Caddy's, by domain; only looked up for what is missing. */
  healthPaths: ReadonlyMap<string, string>;
  /** Addresses that their nodes say are draining; only looked up for what is missing. */
  draining: ReadonlySet<string>;
};
