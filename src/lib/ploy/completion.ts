// What a job is told to have come to. The status follows from the exit code alone, or from its having been cancelled.
import { limits } from './limits.ts';
import type { CompletionBody, CompletionStats, JobType, TerminalStatus } from './wire.ts';

/** The exit code of a job that failed before its container ran. */
const noContainer = -1;

/** Undefined as an exit code: nothing is known of how it ended. */
export function toTerminalStatus({
  exitCode,
  isCancelled,
}: {
  exitCode: number | undefined;
  isCancelled: boolean;
}): { status: TerminalStatus; exit_code?: number } {
  if (isCancelled) return { status: 'Cancelled' };
  if (exitCode === undefined) return { status: 'Error', exit_code: noContainer };
  const code = toInt32(exitCode);
  if (code === 0) return { status: 'Success', exit_code: 0 };
  return { status: code === 1 ? 'Fail' : 'Error', exit_code: code };
}

type Timings = NonNullable<CompletionStats['timings']>;

export type JobOutcome = {
  jobType: JobType;
  /** Undefined where the container's end is not known. */
  exitCode: number | undefined;
  isCancelled: boolean;
  durationMs: number;
  /** Something of ours that failed though the container ran: such a job is an error, whatever its exit code. */
  error?: string | undefined;
  timings?: CompletionStats['timings'] | undefined;
  resources?: CompletionStats['job_resources'] | undefined;
  metadata?: Readonly<Record<string, string>> | undefined;
  repoShaOut?: string | undefined;
};

/** Of a job whose container has run. */
export function buildCompletion(outcome: JobOutcome): CompletionBody {
  const { jobType, error, timings, resources, metadata, repoShaOut, isCancelled } = outcome;
  const exitCode = error === undefined ? outcome.exitCode : failedCode(outcome.exitCode);
  const end = toTerminalStatus({ exitCode, isCancelled });
  const durationMs = toCount(outcome.durationMs);
  const isGate = jobType !== 'mig';
  const stats: CompletionStats = {
    ...(end.exit_code === undefined ? {} : { exit_code: end.exit_code }),
    duration_ms: durationMs,
    ...(error === undefined ? {} : { error: cutError(error) }),
    ...(isEmpty(metadata) ? {} : { metadata }),
    ...(isGate ? { gate: { passed: end.status === 'Success', duration_ms: durationMs } } : {}),
    ...(isGate ? { job_meta: { kind: 'gate' } } : {}),
    ...(resources === undefined ? {} : { job_resources: toResources(resources) }),
    ...(isEmpty(timings) ? {} : { timings: toTimings(timings) }),
  };
  const isWhole = end.status === 'Success' && repoShaOut !== undefined;
  return { ...end, stats, ...(isWhole ? { repo_sha_out: repoShaOut } : {}) };
}

/** Of a job that failed before its container ran, or whose container is gone. */
export function buildFailure(about: {
  error: string;
  durationMs: number;
  isCancelled?: boolean;
}): CompletionBody {
  const end = toTerminalStatus({ exitCode: undefined, isCancelled: about.isCancelled === true });
  const stats = { duration_ms: toCount(about.durationMs), error: cutError(about.error) };
  return { ...end, stats };
}

/** Of a container that ended while nobody looked. */
export function buildReplayCompletion(about: {
  containerId: string;
  exitCode: number;
  startedAt?: string | undefined;
  finishedAt?: string | undefined;
}): CompletionBody {
  const { containerId, exitCode, startedAt, finishedAt } = about;
  const durationMs = Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '');
  const end = toTerminalStatus({ exitCode, isCancelled: false });
  const metadata = { source: 'startup_reconcile', container_id: containerId };
  return { ...end, stats: { exit_code: toInt32(exitCode), duration_ms: toCount(durationMs), metadata } };
}

/** A job that printed success and could not be finished is no success. */
function failedCode(exitCode: number | undefined): number | undefined {
  return exitCode === 0 ? undefined : exitCode;
}

/** The wire has 32 bits; engines have been seen to give unsigned ones. */
function toInt32(exitCode: number): number {
  return Number.isSafeInteger(exitCode) ? exitCode | 0 : noContainer;
}

/** Never negative, however the clock went. */
function toCount(value: number): number {
  return Number.isFinite(value) ? Math.max(0, Math.round(value)) : 0;
}

function toTimings(timings: Timings): Timings {
  return Object.fromEntries(Object.entries(timings).map(([name, value]) => [name, toCount(value)]));
}

function toResources(resources: NonNullable<CompletionStats['job_resources']>) {
  return {
    cpu_consumed_ns: toCount(resources.cpu_consumed_ns),
    disk_consumed_bytes: toCount(resources.disk_consumed_bytes),
    mem_consumed_bytes: toCount(resources.mem_consumed_bytes),
  };
}

function cutError(error: string): string {
  return error.length <= limits.errorCharacters ? error : `${error.slice(0, limits.errorCharacters)} …`;
}

function isEmpty(value: object | undefined): value is undefined {
  return value === undefined || Object.keys(value).length === 0;
}
