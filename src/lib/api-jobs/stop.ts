// `/v1/run/stop`: the end of every open job of a run, asked for by a record that each job's runner looks at.
import { join } from 'node:path';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { type JobPlace, listOpenJobs, readCancel, readJob, writeCancel } from '../jobs/book.ts';
import { cleanReason } from '../jobs/cancel-reason.ts';
import { openJobsDir } from '../jobs/records.ts';
import { type Answer, ApiError, type ApiRequest, readJsonBody } from '../server/route.ts';

export async function handleStop(ctx: Context, request: ApiRequest): Promise<Answer> {
  const { runId, reason } = parseStop(await readJsonBody(request));
  const places = await findOpenJobs(ctx, runId);
  if (places.length === 0) throw new ApiError(500, `stop run failed: run ${runId} has no open job here`);
  for (const place of places) {
    // The first reason stays.
    if ((await readCancel(ctx, place)) !== undefined) continue;
    await writeCancel(place, { at: ctx.clock.now().toISOString(), reason, by: 'api' });
    ctx.log.info('cancels a job', { job: place.key, run: runId, reason });
  }
  return { status: 200, json: { run_id: runId, status: 'stopped' } };
}

function parseStop(raw: unknown): { runId: string; reason: string } {
  const { run_id: runId, reason } = (raw ?? {}) as { run_id?: unknown; reason?: unknown };
  if (runId === undefined || runId === null || runId === '') throw new ApiError(400, 'run_id is required');
  if (typeof runId !== 'string') throw new ApiError(400, 'invalid request: run_id is no text');
  if (reason !== undefined && reason !== null && typeof reason !== 'string') {
    throw new ApiError(400, 'invalid request: reason is no text');
  }
  return { runId, reason: cleanReason(reason ?? '') || 'stopped through the API' };
}

async function findOpenJobs(ctx: Context, runId: string): Promise<JobPlace[]> {
  const found: JobPlace[] = [];
  for (const key of await listOpenJobs(ctx)) {
    const place = { key, directory: join(openJobsDir(ctx.paths), key), isOpen: true };
    // One that cannot be read keeps no other from being stopped.
    const read = await readJob(ctx, place, false).catch((error: unknown) => {
      ctx.log.warning(`cannot tell whose job ${key} is: ${describeError(error)}`);
    });
    if (read?.claim?.runId === runId) found.push(place);
  }
  return found;
}
