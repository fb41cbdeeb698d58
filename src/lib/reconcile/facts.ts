// The world as one plain value, and the words for it. gather.ts fills it in, plan.ts reads it; neither knows the other.

import type { BackupsDocument } from '../backup/state.ts';
import type { RejectedService } from '../cluster/desired.ts';
import type { ReplicaIdentity } from '../cluster/names.ts';
import type { DesiredService } from '../cluster/wire.ts';
import type { ContainerState } from '../docker/types.ts';
import type { Hold } from '../hold/holds.ts';
import type { CronDocument } from './documents.ts';

/** A container of ours. */
export type Replica = ReplicaIdentity & {
  containerId: string;
  name: string;
  state: ContainerState;
  statusText: string;
  hostPort: number | undefined;
  /** The port inside that `hostPort` leads to. A container that does not run shows neither. */
  containerPort: number | undefined;
  networks: readonly string[];
  createdAt: Date;
  /** Of one that has ended. */
  exitCode?: number | undefined;
};

/** A container with the seeds' label that is not ours. Never touched. */
export type Stranger = { containerId: string; name: string; key: string | undefined; why: string };

/** Where a replica stands between two places; a replica without a record serves. Keyed by container name. */
export type ReplicaRecord =
  | { phase: 'starting'; since: string; deadline: string; release: string; attempt: number }
  | {
      phase: 'draining';
      since: string;
      drainUntil: string | null;
      /** When every edge was first seen to hold the routing without it; the wait has been cut short by then. */
      acknowledgedAt?: string;
      reason: string;
    }
  | { phase: 'stopping'; since: string; killAt: string; afterwards: 'remove' | 'keep'; reason: string };

/** A release (image, resources, stamp) that did not come up, and when it may be tried again. */
export type FailureRecord = {
  attempts: number;
  lastAt: string;
  nextTryAt: string;
  error: string;
  imageId?: string;
};

export type ServiceRecord = {
  replicas: Readonly<Record<string, ReplicaRecord>>;
  /** By release. Kept for the last few only. */
  failures: Readonly<Record<string, FailureRecord>>;
};

/** What was published to an edge last. Everything that is optional is unknown in files of earlier versions. */
export type PublishedShard = {
  fingerprint: string;
  lastWriteAt: string;
  backends?: readonly PublishedBackend[];
  /** Backends of replicas that still run, gone from the shard. As long as the floor they may be sent to without a report. */
  left?: readonly LeftBackend[];
  /** Who has each domain, in lower case, by the service's key. */
  holders?: Readonly<Record<string, string>>;
  /** The edge's report did not name this shard when it was written: so that once it does, the shard is in force. */
  unseen?: boolean;
};

export type PublishedBackend = { domain: string; hostPort: number };

/** `at`: when the shard was planned that it is gone from. */
export type LeftBackend = PublishedBackend & { at: string };

export type PublishedShards = Readonly<Record<string, PublishedShard>>;

export type RolloutRecord = { services: Readonly<Record<string, ServiceRecord>> };

/** What this process has measured of a starting replica, by container name; measured anew after a crash. */
export type ProbeState = {
  /** Consecutive passes so far. */
  passes: number;
  nextAt: Date;
  /** What came back last, in words. */
  last: string;
  /** Set when no further look can help. */
  failed?: string;
};

export type DesiredFacts =
  | { kind: 'none'; reason: string }
  | {
      kind: 'document';
      updatedAt: string;
      services: readonly DesiredService[];
      rejected: readonly RejectedService[];
    };

export type Facts = {
  now: Date;
  node: NodeFacts;
  desired: DesiredFacts;
  replicas: readonly Replica[];
  strangers: readonly Stranger[];
  record: RolloutRecord;
  /** Last fires of schedules. */
  cron: CronDocument;
  /** What is known of backups; empty where no service has any. */
  backups: BackupsDocument;
  /** When one-off runs that are desired have ended, ISO, by container id. */
  finishedAt: ReadonlyMap<string, string>;
  /** Host ports by `<project>/<service>#<index>`. */
  ports: Readonly<Record<string, number>>;
  /** Every edge knows the shard that the present routable replicas make. */
  routingPublished: boolean;
  /** What was published last, by edge. */
  shards: PublishedShards;
  /** Fingerprint of our shard that each edge reports to be in force. Only of edges that were asked and whose report could be read. */
  applied: ReadonlyMap<string, string | undefined>;
  probes: ReadonlyMap<string, ProbeState>;
  holds: readonly Hold[];
  /** Services whose removal `deploy` has announced. */
  announcedRemovals: readonly string[];
  /** Services with steps under way in this process: not to be planned now. */
  busy: ReadonlySet<string>;
  /** Container names whose stop this process has asked for already. */
  stopsAsked: ReadonlySet<string>;
  /** What this process tries once: failed releases looked at again, `<key> <release>`, and joins, `join <container>`. */
  rechecked: ReadonlySet<string>;
};

export type NodeFacts = {
  nodeId: string;
  /** Shortest wait between leaving the routing and being stopped, where an edge does not acknowledge. */
  drainFloorMs: number;
  /** The address that edges reach this node's ports at. */
  privateIp: string;
  /** Address that published ports are bound to and probed at. */
  probeHost: string;
};

/** What a person asked of this run. */
export type PlanOptions = { only?: string; allowRemoval: boolean };

/** Nothing recorded: a first run, or a service that is where it should be. */
export const emptyServiceRecord: ServiceRecord = { replicas: {}, failures: {} };
