// Taking a command: written down once, whoever asks how often, and then started. Whoever calls lets nobody else change the same
// command meanwhile.
import type { JobRequest } from '../agenda/wire.ts';
import type { BaseContext } from '../context.ts';
import { describeError, InputError, UnavailableError } from '../errors.ts';
import { requireBootId } from '../host/boot.ts';
import { newRunId } from '../ids.ts';
import { isCancelled, makeRecord, readRecord } from './book.ts';
import { type CommandRecord, commandKey } from './records.ts';
import { failCommand, type SettleContext, settleCommand } from './settle.ts';
import { lasting, startCommand } from './start.ts';

type OpenContext = SettleContext & Pick<BaseContext, 'signal'>;

/** A command that was deleted has five seconds to settle, and its pipes as many. */
const endMs = 20_000;
const lookMs = 100;

export type OpenOptions = {
  /** Throws where there is no room for another one. What it gives is called once there is a record, or there will be none. */
  admit(key: string): Promise<() => void>;
  /** The caller's. */
  signal: AbortSignal;
};

/**
 * `known`: there is one with this id, and nothing is done. Throws UnavailableError where one that was deleted does not end, and
 * InputError where another id has the same name on this node.
 */
export async function openCommand(
  ctx: OpenContext,
  request: JobRequest,
  { admit, signal }: OpenOptions,
): Promise<'opened' | 'known'> {
  const key = commandKey(request.jobId);
  if (await isKnown(ctx, request.jobId, signal)) return 'known';
  const bootId = await requireBootId(ctx.paths);
  const recorded = await admit(key);
  const record: CommandRecord = {
    jobId: request.jobId,
    generation: newRunId(ctx.clock.now()),
    acceptedAt: ctx.clock.now().toISOString(),
    bootId,
    state: { kind: 'accepted', request },
  };
  if ((await makeRecord(ctx, record).finally(recorded)) === 'known') return 'known';
  // It is written down: from here on its caller is told so, and how it ended when it asks for that.
  await startCommand(lasting(ctx), key).catch((error: unknown) =>
    failCommand(ctx, key, describeError(error)),
  );
  return 'opened';
}

/** Waits for the end of one that was deleted. */
async function isKnown(ctx: OpenContext, jobId: string, signal: AbortSignal): Promise<boolean> {
  const key = commandKey(jobId);
  const lastMs = performance.now() + endMs;
  for (;;) {
    const record = await readRecord(ctx, key);
    if (record === undefined) return false;
    if (record === 'damaged') return true;
    if (record.jobId !== jobId) throw new InputError(`job_id stands for another job here: ${record.jobId}`);
    if (!(await isCancelled(ctx, key, record))) return true;
    // Removed here where nobody has it.
    await settleCommand(ctx, key);
    if (performance.now() > lastMs || signal.aborted) {
      throw new UnavailableError(`the job that had the id ${record.jobId} has not ended yet`);
    }
    await ctx.clock.sleep(lookMs, signal);
  }
}
