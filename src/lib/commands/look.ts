// How a command stands, for whoever asks: one file is read, and its output where it has ended. What is found lost is settled, and
// what was never started is started.
import { errorTexts, type JobAnswer } from '../agenda/wire.ts';
import type { BaseContext } from '../context.ts';
import { findBootId } from '../host/boot.ts';
import { isCancelled, readOutput, readRecord } from './book.ts';
import { type CommandRecord, commandKey, isEnded } from './records.ts';
import { findLoss, type SettleContext, settleCommand } from './settle.ts';
import { startLost } from './start.ts';

type LookContext = SettleContext & Pick<BaseContext, 'signal'>;

/** Whoever took a command starts it at once. After so long it has been lost between the two. */
const startMs = 5_000;
/** For another one who settles it. */
const settleMs = 2_000;

/** Undefined where there is none, or none any more. `isLive`: what it has printed so far is told. */
export async function lookAtCommand(
  ctx: LookContext,
  jobId: string,
  isLive = false,
): Promise<JobAnswer | undefined> {
  const key = commandKey(jobId);
  const record = await readRecord(ctx, key);
  if (record === undefined) return undefined;
  if (record === 'damaged') return renderFailure(-1, errorTexts.damaged, '');
  if (record.jobId !== jobId) return undefined;
  if (await isCancelled(ctx, key, record)) return undefined;
  if (isEnded(record.state)) return await renderEnded(ctx, key, record);
  if (findLoss(record, await findBootId(ctx.paths)) !== undefined) return await lookAtLost(ctx, key);
  await startLost(ctx, key, record, new Date(ctx.clock.now().getTime() - startMs));
  return await renderRunning(ctx, key, isLive);
}

/** It may have ended between the two looks: then nobody has anything to settle, and the record says how. */
async function lookAtLost(ctx: LookContext, key: string): Promise<JobAnswer | undefined> {
  const record = (await settleCommand(ctx, key, settleMs)) ?? (await readRecord(ctx, key));
  if (record === undefined) return undefined;
  if (record === 'damaged') return renderFailure(-1, errorTexts.damaged, '');
  return isEnded(record.state) ? await renderEnded(ctx, key, record) : await renderRunning(ctx, key, false);
}

async function renderRunning(ctx: LookContext, key: string, isLive: boolean): Promise<JobAnswer> {
  return { status: 'running', exit_code: 0, output: isLive ? await readOutput(ctx, key) : '' };
}

async function renderEnded(
  ctx: LookContext,
  key: string,
  { state }: CommandRecord,
): Promise<JobAnswer | undefined> {
  const output = await readOutput(ctx, key);
  if (state.kind === 'success') return { status: 'success', exit_code: 0, output };
  return state.kind === 'failed' ? renderFailure(state.exitCode, state.error, output) : undefined;
}

function renderFailure(exitCode: number, error: string, output: string): JobAnswer {
  return { status: 'failed', exit_code: exitCode, output, error };
}
