// One request on its way through the strict server, and what every route may ask of it.
import type * as z from 'zod';
import { PloyRefusal, parseBody } from './body.ts';
import { isKsuid } from './jobs.ts';
import type { PloyJob, PloyNode, PloyRequest, PloyState } from './model.ts';
import type { Pki } from './pki.ts';

export type PloyAnswer = {
  status: number;
  json?: unknown;
  bytes?: Buffer;
  headers?: Readonly<Record<string, string>>;
};

export type PloyCall = {
  readonly state: PloyState;
  /** Undefined where this server issues no certificates. */
  readonly pki: Pki | undefined;
  readonly record: PloyRequest;
  readonly body: Buffer;
  /** Of the path, in their order. */
  readonly ids: readonly string[];
  /** From the header; the empty string where it is missing and not asked for. */
  readonly nodeId: string;
  readonly bearer: string | undefined;
};

export function readCall<T>({ body, record }: PloyCall, shape: z.ZodType<T>): T {
  const parsed = parseBody(shape, body);
  record.body = shorten(JSON.parse(body.toString('utf8')));
  return parsed;
}

/** Uploads are kept once, decoded, in the ledger. */
export function shorten(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null) return raw;
  const entries = Object.entries(raw).map(([name, value]) =>
    typeof value === 'string' && value.length > 1000 && ['data', 'patch', 'bundle'].includes(name)
      ? [name, `${value.length} characters`]
      : [name, value],
  );
  return Object.fromEntries(entries);
}

/** The node of the path. */
export function requireNode({ state, ids }: PloyCall): PloyNode {
  const node = state.nodes.get(ids[0] ?? '');
  if (node === undefined) throw new PloyRefusal(404, 'node not found');
  return node;
}

export function requireJob({ state }: PloyCall, jobId: string): PloyJob {
  if (!isKsuid(jobId)) throw new PloyRefusal(400, 'job_id: invalid job id');
  const job = state.jobs.get(jobId);
  if (job === undefined) throw new PloyRefusal(404, 'job not found');
  return job;
}

export function requireOwnJob(call: PloyCall, jobId: string): PloyJob {
  const job = requireJob(call, jobId);
  if (job.nodeId !== call.nodeId) throw new PloyRefusal(403, 'job not assigned to this node');
  return job;
}

export function requireRunning(job: PloyJob): void {
  if (job.status !== 'Running') throw new PloyRefusal(409, `job status is ${job.status}, expected Running`);
}

/** The job of `/v1/runs/{run}/jobs/{job}/…`. */
export function requireJobOfRun(call: PloyCall): PloyJob {
  const [runId = '', jobId = ''] = call.ids;
  requireRun(call, runId);
  const job = requireJob(call, jobId);
  if (job.payload.id !== runId) throw new PloyRefusal(400, 'job does not belong to run');
  return requireOwnJob(call, jobId);
}

export function requireRun({ state }: PloyCall, runId: string): PloyJob[] {
  if (!isKsuid(runId)) throw new PloyRefusal(400, 'run_id: invalid run id');
  const jobs = [...state.jobs.values()].filter(({ payload }) => payload.id === runId);
  if (jobs.length === 0) throw new PloyRefusal(404, 'run not found');
  return jobs;
}
