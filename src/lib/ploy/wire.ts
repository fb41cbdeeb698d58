// What crosses the boundary to ploy's server, as types: names and units are the wire's own. schema.ts checks them at the door.

export const jobTypes = ['pre_gate', 'mig', 'post_gate'] as const;
export type JobType = (typeof jobTypes)[number];

/** What a job can be told to the server as; it tells `Running` and more itself. */
export type TerminalStatus = 'Success' | 'Fail' | 'Error' | 'Cancelled';

export type StackTuple = { language: string; tool: string; release?: string | undefined };

/** The answer of a claim, and the body of `/v1/run/start` as far as it has the same words. */
export type ClaimPayload = {
  /** Of the run, not of the job. */
  id: string;
  name?: string | undefined;
  repo_id: string;
  attempt?: number | undefined;
  job_id: string;
  job_name: string;
  job_type: JobType;
  job_image: string;
  /** Null: the last of its chain. */
  next_id: string | null;
  repo_url: string;
  status: string;
  node_id: string;
  base_ref: string;
  commit_sha?: string | undefined;
  repo_sha_in?: string | undefined;
  started_at?: string | undefined;
  created_at?: string | undefined;
  /** Parsed apart: what is wrong in it is the job's error, not the claim's. */
  spec?: unknown;
  mig_context?: { step_index: number } | undefined;
  gate_context?: { cycle_name: string } | undefined;
  detected_stack?: StackTuple | undefined;
  /** Only of `/v1/run/start`, which has no spec: over everything that a spec has. */
  env?: Readonly<Record<string, string>> | undefined;
};

export type CompletionBody = {
  status: TerminalStatus;
  exit_code?: number;
  stats?: CompletionStats;
  /** 40 hex digits. */
  repo_sha_out?: string;
};

export type CompletionStats = {
  exit_code?: number;
  duration_ms?: number;
  error?: string;
  metadata?: Readonly<Record<string, string>>;
  gate?: { passed: boolean; duration_ms: number };
  job_resources?: { cpu_consumed_ns: number; disk_consumed_bytes: number; mem_consumed_bytes: number };
  job_meta?: { kind: 'mig' | 'gate' | 'build' };
  timings?: Readonly<Partial<Record<TimingName, number>>>;
};

export type TimingName =
  | 'hydration_duration_ms'
  | 'execution_duration_ms'
  | 'build_gate_duration_ms'
  | 'diff_duration_ms'
  | 'total_duration_ms';

/** One line of a job's output, as it stands in a chunk: gzip over lines of this JSON. */
export type LogFrame = { stream: 'stdout' | 'stderr'; line: string };

export type RunEvent = {
  job_id?: string;
  /** RFC 3339. */
  time?: string;
  level: 'info' | 'warn' | 'error';
  message: string;
  meta?: Readonly<Record<string, unknown>>;
};

export type DiffSummary = {
  job_type: JobType;
  exit_code: number;
  files_changed: number;
  lines_added: number;
  lines_removed: number;
  timings?: CompletionStats['timings'];
};

export type HeartbeatBody = {
  /** Thousandths of a CPU, int32. */
  cpu_free_millis: number;
  cpu_total_millis: number;
  mem_free_bytes: number;
  mem_total_bytes: number;
  disk_free_bytes: number;
  disk_total_bytes: number;
  version?: string;
};

export type DiagnosticsBody = {
  component: 'node';
  status: 'ok' | 'unknown' | 'degraded' | 'error';
  last_error?: string;
  version?: string;
  details: Readonly<Record<string, unknown>>;
  last_checked_at?: string;
  last_success_at?: string;
};
