// What the strict server of ploy remembers, as plain values: jobs with all that was told of them, nodes, and each request.
import type {
  ClaimPayload,
  CompletionBody,
  DiagnosticsBody,
  HeartbeatBody,
  LogFrame,
  RunEvent,
} from '../../../src/lib/ploy/wire.ts';

export type PloyRoute =
  | 'claim'
  | 'complete'
  | 'status'
  | 'logs'
  | 'job-logs'
  | 'events'
  | 'diff'
  | 'artifact'
  | 'image'
  | 'sbom'
  | 'diagnostics'
  | 'daemon-logs'
  | 'heartbeat'
  | 'snapshot'
  | 'spec-bundle'
  | 'bootstrap';

/** By `Date.now()`, so that it can be compared with what processes did. */
export type PloyConnection = {
  readonly id: number;
  readonly openedAtMs: number;
  closedAtMs: number | undefined;
  /** How many requests have come over it. */
  requests: number;
};

/** In the order of their arrival. */
export type PloyRequest = {
  readonly atMs: number;
  readonly connection: PloyConnection;
  /** Which one of its connection, from 1. */
  readonly turn: number;
  readonly method: string;
  readonly path: string;
  /** Undefined where there is no such route. */
  readonly route: PloyRoute | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  body: unknown;
  readonly bodyBytes: number;
  /** Of the client's certificate; undefined without one, and over plain HTTP. */
  readonly certificateName: string | undefined;
  /** Undefined until it is answered, and where it never was. */
  status: number | undefined;
  /** The fault that it met. */
  fault: string | undefined;
  /** What it asked for was done, whatever the client learned of it. */
  committed: boolean;
  /** The job that a claim was answered with. */
  given: string | undefined;
};

export type JobStatus = 'Created' | 'Queued' | 'Running' | 'Success' | 'Fail' | 'Error' | 'Cancelled';

export type StoredChunk = {
  chunkNo: number;
  atMs: number;
  gzipBytes: number;
  /** Of what is in it, decompressed. */
  sha256: string;
  bytes: number;
  /** Undefined from where a job's log is larger than the server keeps. */
  frames: readonly LogFrame[] | undefined;
};

export type StoredDiff = { patch: string; summary: unknown; atMs: number };

export type StoredArtifact = { name: string | undefined; tarGz: Buffer; atMs: number };

/** A job on the server, and all that came for it. */
export type PloyJob = {
  readonly payload: ClaimPayload;
  readonly after: string | undefined;
  status: JobStatus;
  nodeId: string | undefined;
  claimedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  readonly history: { status: JobStatus; atMs: number }[];
  /** Completions that were accepted. More than one is impossible; what was refused with 409 is in `refusedCompletions`. */
  readonly completions: CompletionBody[];
  readonly refusedCompletions: { body: CompletionBody; status: number }[];
  readonly chunks: Map<number, StoredChunk>;
  /** Hashes of all that came under a number, whether it was kept, refused or never answered. */
  readonly sentChunks: Map<number, Set<string>>;
  /** How often a chunk came that was there already. */
  repeatedChunks: number;
  readonly lines: { stdout: number; stderr: number };
  readonly diffs: StoredDiff[];
  readonly artifacts: StoredArtifact[];
  readonly events: RunEvent[];
  readonly images: string[];
  readonly packages: { package: string; version: string }[];
};

export type PloyNode = {
  readonly id: string;
  /** Gets no work. */
  drained: boolean;
  readonly heartbeats: (HeartbeatBody & { atMs: number })[];
  readonly diagnostics: DiagnosticsBody[];
  readonly daemonLogs: { stream: string; lines: readonly string[] }[];
};

export type Snapshot = { commitSha: string; tarGz: Buffer };

/** The server's world. Routes change it; tests look at it. */
export type PloyState = {
  readonly nodes: Map<string, PloyNode>;
  readonly jobs: Map<string, PloyJob>;
  /** By run; all others have `snapshot`. */
  readonly snapshots: Map<string, Snapshot>;
  snapshot: Snapshot | undefined;
  readonly bundles: Map<string, Buffer>;
  readonly requests: PloyRequest[];
  /** Events of runs without a job. */
  readonly runEvents: { runId: string; event: RunEvent }[];
  /** What a correct node never does, though the server may bear it. */
  readonly violations: string[];
  /** Bearer tokens of nodes. */
  readonly tokens: Set<string>;
  /** Tokens for one exchange each. */
  readonly bootstrapTokens: Map<string, { nodeId: string; isUsed: boolean; expiresAtMs: number }>;
  /** So many bytes of a job's log are kept as frames; of the rest there are counts and hashes. */
  keptLogBytes: number;
};
