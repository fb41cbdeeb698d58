// Claim, status and end of a job, and what is told of it while it runs.
import { PloyRefusal, requireStorable } from './body.ts';
import {
  type PloyAnswer,
  type PloyCall,
  readCall,
  requireJob,
  requireNode,
  requireOwnJob,
  requireRunning,
} from './call.ts';
import { claimJob, endJob, isKsuid, terminalStatuses } from './jobs.ts';
import type { JobStatus, PloyJob } from './model.ts';
import { shapes } from './shapes.ts';

const sha40 = /^[0-9a-f]{40}$/;

export function answerClaim(call: PloyCall): PloyAnswer {
  const { state, nodeId, body } = call;
  requireNode(call);
  if (body.length > 0) state.violations.push(`a claim with a body of ${body.length} bytes`);
  const job = claimJob(state, nodeId);
  if (job === undefined) return { status: 204 };
  call.record.given = job.payload.job_id;
  return { status: 200, json: { ...job.payload, node_id: nodeId } };
}

export function answerComplete(call: PloyCall): PloyAnswer {
  const jobId = call.ids[0] ?? '';
  if (!isKsuid(jobId)) throw new PloyRefusal(400, 'job_id: invalid job id');
  const body = readCall(call, shapes.complete);
  const status = parseTerminal(body.status);
  if (body.repo_sha_out !== undefined && !sha40.test(body.repo_sha_out)) {
    throw new PloyRefusal(400, 'repo_sha_out must match ^[0-9a-f]{40}$');
  }
  const job = requireOwnJob(call, jobId);
  try {
    requireRunning(job);
    requireChain(job, status, body.repo_sha_out);
  } catch (error) {
    if (error instanceof PloyRefusal) {
      job.refusedCompletions.push({ body: call.record.body as never, status: error.status });
    }
    throw error;
  }
  requireStorable(body.stats?.job_meta, 'complete job');
  job.completions.push(call.record.body as never);
  if (status === 'Cancelled' && typeof body.exit_code === 'number') {
    call.state.violations.push(`job ${jobId} was cancelled and has exit code ${body.exit_code}`);
  }
  endJob(call.state, job, status);
  return { status: 204 };
}

function parseTerminal(raw: string): JobStatus {
  const status = terminalStatuses.find((one) => one === raw.trim());
  if (status === undefined) {
    throw new PloyRefusal(400, `status must be Success, Fail, Error, or Cancelled, got ${raw}`);
  }
  return status;
}

/** Whatever follows in a chain begins with what this job has left. A gate leaves what it found. */
function requireChain({ payload }: PloyJob, status: JobStatus, repoShaOut: string | undefined): void {
  if (status !== 'Success' || payload.next_id === null) return;
  if (!sha40.test(payload.repo_sha_in ?? '')) {
    throw new PloyRefusal(409, 'job repo_sha_in must match ^[0-9a-f]{40}$ for chain progression');
  }
  if (repoShaOut === undefined && payload.job_type === 'mig') {
    throw new PloyRefusal(400, 'repo_sha_out is required for successful jobs with next_id');
  }
}

export function answerStatus(call: PloyCall): PloyAnswer {
  const job = requireOwnJob(call, call.ids[0] ?? '');
  const [last] = job.completions;
  const { payload } = job;
  const time = (atMs: number | undefined): string | null =>
    atMs === undefined ? null : new Date(atMs).toISOString();
  return {
    status: 200,
    json: {
      job_id: payload.job_id,
      run_id: payload.id,
      repo_id: payload.repo_id,
      attempt: payload.attempt,
      name: payload.job_name,
      job_type: payload.job_type,
      status: job.status,
      job_image: payload.job_image,
      node_id: job.nodeId ?? null,
      exit_code: last?.exit_code ?? null,
      started_at: time(job.claimedAtMs),
      finished_at: time(job.finishedAtMs),
      duration_ms: (job.finishedAtMs ?? 0) - (job.claimedAtMs ?? 0),
      repo_sha_in: payload.repo_sha_in ?? '',
      repo_sha_out: last?.repo_sha_out ?? '',
      repo_sha_in8: (payload.repo_sha_in ?? '').slice(0, 8),
      repo_sha_out8: (last?.repo_sha_out ?? '').slice(0, 8),
    },
  };
}

export function answerImage(call: PloyCall): PloyAnswer {
  const { image } = readCall(call, shapes.image);
  if (image.trim() === '') throw new PloyRefusal(400, 'image is required');
  const job = requireOwnJob(call, call.ids[0] ?? '');
  requireRunning(job);
  requireStorable(image, 'save job image');
  job.images.push(image);
  return { status: 204 };
}

export function answerSbom(call: PloyCall): PloyAnswer {
  const { packages } = readCall(call, shapes.sbom);
  requireJob(call, call.ids[0] ?? '');
  const job = requireOwnJob(call, call.ids[0] ?? '');
  requireRunning(job);
  if (job.payload.job_type === 'mig') throw new PloyRefusal(409, 'job type is mig, expected gate');
  requireStorable(packages, 'save job sbom');
  job.packages.splice(0, job.packages.length, ...packages);
  return { status: 200, json: { job_id: job.payload.job_id, row_count: packages.length } };
}
