// `/v1/run/start`: a job of a caller's own. It waits for a slot as long as its caller does; once it is written down it is a
// job like any other, and the answer only tells so.
import { requireSection } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { findJob } from '../jobs/book.ts';
import { type JobClaim, jobKey } from '../jobs/records.ts';
import { openInSlot } from '../jobs/slots.ts';
import { startJob } from '../jobs/start.ts';
import { parseRunStart } from '../ploy/parse.ts';
import { type Answer, ApiError, type ApiRequest, readJsonBody } from '../server/route.ts';
import type { Turns } from '../turns.ts';

/** Between two looks for a slot that has come free. */
const waitForSlotMs = 250;

/** `turns`: of all callers that wait for a slot one looks for it, as each look takes the lock that claims need as well. */
export async function handleStart(ctx: Context, request: ApiRequest, turns: Turns): Promise<Answer> {
  const raw = await readJsonBody(request);
  const { id: runId, job_id: jobId } = parseRunStart(raw);
  const { serverUrl, concurrency } = requireSection(ctx.config, 'jobs');
  const payload = toPayload(raw, serverUrl);
  const known = new ApiError(500, `start run failed: job ${jobId} is known already`);
  // Before it waits for a slot that it would not use.
  if ((await findJob(ctx, jobId)) !== undefined) throw known;
  const { signal } = request;
  const wanted = { runId, jobId, payload };
  const open = () => waitUntilOpen(ctx, wanted, { concurrency, signal });
  const opening = await turns('slot', open, signal).catch((error: unknown) => {
    requireCaller(ctx, signal);
    throw error;
  });
  if (opening === 'known') throw known;
  const key = jobKey(jobId);
  ctx.log.info('took a job from the API', { job: jobId, run: runId });
  // It is written down, and whoever tends open jobs starts it: the caller is told the truth either way.
  await startJob(ctx, key).catch((error: unknown) => {
    ctx.log.warning(`job ${jobId} waits for the next claim: ${describeError(error)}`);
  });
  return { status: 202, json: { run_id: runId, status: 'accepted' } };
}

type Wanted = { runId: string; jobId: string; payload: unknown };

async function waitUntilOpen(
  ctx: Context,
  wanted: Wanted,
  { concurrency, signal }: { concurrency: number; signal: AbortSignal },
): Promise<'opened' | 'known'> {
  for (;;) {
    requireCaller(ctx, signal);
    const claim: JobClaim = { source: 'api', claimedAt: ctx.clock.now().toISOString(), ...wanted };
    const withCaller = { ...ctx, signal: AbortSignal.any([ctx.signal, signal]) };
    const opening = await openInSlot(withCaller, claim, concurrency);
    if (opening !== 'full') return opening;
    await ctx.clock.sleep(waitForSlotMs, signal);
  }
}

function requireCaller(ctx: Context, signal: AbortSignal): void {
  if (ctx.signal.aborted) throw new UnavailableError('start run failed: the node is being stopped');
  if (!signal.aborted) return;
  throw signal.reason instanceof ApiError ? signal.reason : new ApiError(408, 'the caller has left');
}

/** As a claim carries it: what runs jobs reads both alike. The server is ours, whatever the caller says. */
function toPayload(raw: unknown, serverUrl: string): unknown {
  const { run_id: id, status: _, ...rest } = raw as Readonly<Record<string, unknown>>;
  return { ...rest, id, status: 'Running', server_url: serverUrl };
}
