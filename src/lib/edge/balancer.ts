// What spreads a domain's requests over its backends. There are two: Caddy by itself, and HAProxy behind it
// (haproxy-balancer.ts). Caddy always has TLS and the domains.
import type { Route } from './route.ts';

/** Caddy's whole document. */
export type CaddyDocument = Readonly<Record<string, unknown>>;

/** A change of the balancer, done or to be done. */
export type BalancerChange = {
  action: 'write' | 'reload' | 'add' | 'ready' | 'drain' | 'delete';
  /** Domain, or `DOMAIN HOST:PORT`. */
  subject: string;
  reason: string;
};

/** A change of the balancer or of Caddy. */
export type EdgeChange = BalancerChange | { action: 'push'; subject: string; reason: string };

/** What the balancer serves now, compared with the routes. */
export type BalancerState = {
  /** In the order in which they are done; none where it serves the routes. */
  changes: readonly BalancerChange[];
};

export type Balancer = {
  readonly name: 'caddy' | 'haproxy';
  /** The document that Caddy is to have for these routes. */
  buildCaddyDocument(routes: readonly Route[]): CaddyDocument;
  /**
   * Stands for what it serves now and for the file that it starts from. Undefined where it cannot be asked; never throws.
   */
  fetchStamp(): Promise<string | undefined>;
  /** Paths of its own probes by domain, as it starts with them. Never throws. */
  readHealthPaths(): Promise<ReadonlyMap<string, string>>;
  /** Throws UnavailableError where Caddy would find nobody to pass requests on to. */
  requireReady(): Promise<void>;
  /** Reads the running balancer. Throws UnavailableError where it cannot be asked. */
  compare(routes: readonly Route[]): Promise<BalancerState>;
  /** Brings the running balancer, and the file that it starts from, to the routes. Answers what it did. */
  apply(routes: readonly Route[]): Promise<readonly BalancerChange[]>;
};
