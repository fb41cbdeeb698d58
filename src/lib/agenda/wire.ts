// What agenda's control plane and its node say to each other: paths, names and words, exactly as they stand there. Here and
// nowhere else.

/** Of every request but the one for health. */
export const tokenHeader = 'x-agenda-node-token';

/** The routes of the node, `:name` for a part of the path. */
export const paths = {
  health: '/v1/health',
  jobs: '/v1/jobs',
  job: '/v1/jobs/:id',
  proxy: '/v1/proxy/:instance',
  metrics: '/v1/metrics/:app/:instance',
  probe: '/v1/probe/:app/:instance',
  logs: '/v1/logs/:app/:instance',
} as const;

/** Of the control plane. */
export function heartbeatPath(machineId: number): string {
  return `/api/v1/machines/${machineId}/heartbeat`;
}

/** The only three there are. */
export type JobStatus = 'running' | 'success' | 'failed';

/** A job as it was asked for, checked. */
export type JobRequest = {
  jobId: string;
  /** Empty: where commands start by default. */
  dir: string;
  /** `NAME=value`; of two with one name the last is in force. */
  env: readonly string[];
} & ({ mode: 'cmd'; name: string; args: readonly string[] } | { mode: 'shell'; shell: string });

/** The answer about a job. Until it has ended, code and output are empty. */
export type JobAnswer = { status: JobStatus; exit_code: number; output: string; error?: string };

export type HealthAnswer = { version: string; uptime_sec: number };

export type ProxyAnswer = { instance: string; port: number };

/** Of every refusal. */
export type ErrorAnswer = { error: string };

/** After so long a job has failed. */
export const jobLimitMs = 30 * 60_000;

/** Leads an output whose beginning is gone. */
export const truncationMarker = '...[truncated]...\n';

export const errorTexts = {
  token: 'invalid node token',
  unknownJob: 'job not found',
  deadline: 'context deadline exceeded',
  reboot: 'interrupted by a reboot',
  stopped: 'interrupted: its unit was stopped',
  killed: 'interrupted: its process was killed',
  damaged: 'the record of the job is damaged',
  exit: (code: number) => `exit status ${code}`,
  signal: (signal: string) => `ended by ${signal}`,
} as const;
