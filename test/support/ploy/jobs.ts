// Jobs of the strict server: their payloads in the wire's shape, their order, and what ends them.
import { randomBytes } from 'node:crypto';
import type { ClaimPayload } from '../../../src/lib/ploy/wire.ts';
import type { JobStatus, PloyJob, PloyState } from './model.ts';

export type JobOptions = {
  image?: string;
  /** A string is a shell's, a list is the program with its arguments. */
  command?: string | readonly string[];
  envs?: Readonly<Record<string, string>>;
  /** In the one step: files, socket and whatever else a spec has there. */
  step?: Readonly<Record<string, unknown>>;
  /** Instead of the spec that is made of the above; `undefined` leaves it away. */
  spec?: unknown;
  /** A run of its own, where it is not said. */
  runId?: string;
  jobId?: string;
  /** Queued once that one has succeeded. */
  after?: string;
  /** Anything of the payload, last. */
  payload?: Readonly<Partial<Record<keyof ClaimPayload, unknown>>>;
};

export const terminalStatuses: readonly JobStatus[] = ['Success', 'Fail', 'Error', 'Cancelled'];

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const processPart = [...randomBytes(10)].map((byte) => alphabet[byte % 62]).join('');
let ids = 0;

/** In the form of a KSUID: 27 characters, sorted by when they were made, and never those of another test. */
export function makeKsuid(prefix: string): string {
  ids += 1;
  return `${prefix.padEnd(7, '0').slice(0, 7)}${processPart}${String(ids).padStart(10, '0')}`;
}

export function isKsuid(value: string): boolean {
  return /^[0-9A-Za-z]{27}$/.test(value);
}

/** A one-step mig that prints a line, unless it is told otherwise. */
export function buildPayload(options: JobOptions, commitSha: string | undefined): ClaimPayload {
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const image = options.image ?? 'reeve-demo/worker:v1';
  const jobId = options.jobId ?? makeKsuid('Job');
  const { command = 'echo hello', envs = {}, step = {} } = options;
  const spec =
    'spec' in options
      ? options.spec
      : { steps: [{ image, command, envs, ...step }], build_gate: { disabled: true } };
  return {
    id: options.runId ?? makeKsuid('Run'),
    repo_id: 'repo0001',
    attempt: 1,
    job_id: jobId,
    job_name: 'mig-0',
    job_type: 'mig',
    job_image: image,
    next_id: null,
    repo_url: 'https://example.invalid/repo.git',
    status: 'Running',
    node_id: '',
    base_ref: 'main',
    ...(commitSha === undefined ? {} : { commit_sha: commitSha, repo_sha_in: commitSha }),
    started_at: now,
    created_at: now,
    ...(spec === undefined ? {} : { spec }),
    mig_context: { step_index: 0 },
    ...options.payload,
  } as ClaimPayload;
}

export function addJob(state: PloyState, options: JobOptions): PloyJob {
  const payload = buildPayload(options, state.snapshot?.commitSha);
  const job: PloyJob = {
    payload,
    after: options.after,
    status: 'Created',
    nodeId: undefined,
    claimedAtMs: undefined,
    finishedAtMs: undefined,
    ...{ history: [], completions: [], refusedCompletions: [], chunks: new Map(), repeatedChunks: 0 },
    sentChunks: new Map(),
    lines: { stdout: 0, stderr: 0 },
    ...{ diffs: [], artifacts: [], events: [], images: [], packages: [] },
  };
  state.jobs.set(payload.job_id, job);
  const previous = options.after === undefined ? undefined : state.jobs.get(options.after);
  setStatus(job, 'Created');
  if (previous === undefined) setStatus(job, 'Queued');
  // It is not written by hand, so that the chain is what the server goes by.
  else (previous.payload as { next_id: string | null }).next_id = payload.job_id;
  return job;
}

function setStatus(job: PloyJob, status: JobStatus): void {
  job.status = status;
  job.history.push({ status, atMs: Date.now() });
  if (terminalStatuses.includes(status)) job.finishedAtMs = Date.now();
}

/** The first that is queued; all jobs of a run stay with the node that took the first one. */
export function claimJob(state: PloyState, nodeId: string): PloyJob | undefined {
  if (state.nodes.get(nodeId)?.drained === true) return undefined;
  for (const job of state.jobs.values()) {
    if (job.status !== 'Queued' || isElsewhere(state, job, nodeId)) continue;
    job.nodeId = nodeId;
    job.claimedAtMs = Date.now();
    setStatus(job, 'Running');
    return job;
  }
  return undefined;
}

/** Only a job with a predecessor can be bound: with 1,000 runs of one job this must cost nothing. */
function isElsewhere(state: PloyState, job: PloyJob, nodeId: string): boolean {
  const previous = job.after === undefined ? undefined : state.jobs.get(job.after);
  return previous?.nodeId !== undefined && previous.nodeId !== nodeId;
}

/** Success queues the next of the chain, any other end cancels the rest of it. */
export function endJob(state: PloyState, job: PloyJob, status: JobStatus): void {
  setStatus(job, status);
  const next = state.jobs.get(job.payload.next_id ?? '');
  if (next === undefined || terminalStatuses.includes(next.status)) return;
  if (status === 'Success') setStatus(next, 'Queued');
  else endJob(state, next, 'Cancelled');
}

/** What a job printed, in the order of its chunks. Throws where a chunk is missing or was too large to be kept. */
export function readLines(job: PloyJob, stream?: 'stdout' | 'stderr'): string[] {
  const lines: string[] = [];
  for (let chunkNo = 0; chunkNo < job.chunks.size; chunkNo += 1) {
    const frames = job.chunks.get(chunkNo)?.frames;
    if (frames === undefined) throw new Error(`chunk ${chunkNo} of ${job.payload.job_id} is not here`);
    for (const frame of frames) if (stream === undefined || frame.stream === stream) lines.push(frame.line);
  }
  return lines;
}
