// One activation of reconcile: the mechanisms it holds open and what it remembers between two looks.
import type { ClusterConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import type { Engine } from '../docker/types.ts';
import type { SecretSource } from '../secrets/secrets.ts';
import type { HistoryEvent } from '../state/history.ts';
import type { ImagesDocument } from '../state/images-used.ts';
import type { Store } from '../store/store.ts';
import type {
  CronDocument,
  EndsDocument,
  OwnershipDocument,
  PortsDocument,
  ShardsDocument,
} from './documents.ts';
import type { DesiredFacts, ProbeState, RolloutRecord } from './facts.ts';
import type { Ledger } from './ledger.ts';

/** Promises that nobody waits for one by one. */
export type Background = {
  add(work: Promise<void>): void;
  readonly size: number;
  /** How many have settled so far. */
  readonly settled: number;
  /** Resolves when one of them settles; never if there is none. */
  next(): Promise<void>;
  all(): Promise<void>;
};

/** A service's trouble in this activation: after a few in a row it is left to the next one. */
export type Fault = { error: string; inARow: number; notBefore: Date };

/** One action as `--json` tells it. */
export type ActionReport = {
  action: string;
  project: string;
  service: string;
  replica?: number;
  reason: string;
  outcome?: 'done' | 'failed';
  error?: string;
};

export type Session = {
  ctx: Context;
  cluster: ClusterConfig;
  nodeId: string;
  engine: Engine;
  store: Store;
  /** Opened at the first service that has secrets. What has been read is good for one desired state, as `restart` writes one. */
  secrets: { open(): Promise<SecretSource>; forget(): void };
  /** The address that edges reach this node's ports at. */
  privateIp: string;
  rollouts: Ledger<RolloutRecord>;
  ports: Ledger<PortsDocument>;
  shards: Ledger<ShardsDocument>;
  cron: Ledger<CronDocument>;
  images: Ledger<ImagesDocument>;
  ownership: Ledger<OwnershipDocument>;
  desired: DesiredFacts;
  probes: Map<string, ProbeState>;
  stopsAsked: Set<string>;
  rechecked: Set<string>;
  /** Opened at the first one-off run that has ended: most nodes have none. */
  openEnds(): Promise<Ledger<EndsDocument>>;
  /** Services with steps under way. */
  busy: Set<string>;
  /** What went wrong in this activation, by service. */
  faults: Map<string, Fault>;
  /** Stops that the engine is working on. Settled ones are dropped at the next look. */
  background: Background;
  /** What was done in this activation, looks left out. */
  actions: ActionReport[];
  /** Not yet in history. */
  events: HistoryEvent[];
};
