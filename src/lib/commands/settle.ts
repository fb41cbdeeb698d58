// What becomes of a command whose process has gone without a word: killed, or ended with the machine. Its record says so from
// then on. What it has left running is its unit's to end; without units, what its leader still leads is ended here.
import { errorTexts } from '../agenda/wire.ts';
import type { BaseContext } from '../context.ts';
import { BusyError, ConfigError, describeError } from '../errors.ts';
import { findBootId } from '../host/boot.ts';
import { endGroup, isAlive, type ProcessName } from '../host/processes.ts';
import { acquireLock } from '../lock/flock.ts';
import { commandLock } from '../lock/names.ts';
import { isCancelled, readRecord, removeCommand, writeRecord } from './book.ts';
import { type CommandRecord, commandKey, type EndedState, isEnded, type NamedProcess } from './records.ts';

export type SettleContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'runId' | 'command'>;

/** Why nobody runs it any more. Undefined: it has ended, somebody runs it, or it is about to be run. */
export function findLoss(record: CommandRecord, bootNow: string | undefined): string | undefined {
  const { state, bootId } = record;
  if (isEnded(state)) return undefined;
  if (state.kind === 'running' && isAlive(nameOf(record, state.runner), bootNow)) return undefined;
  if (bootId !== bootNow) return errorTexts.reboot;
  return state.kind === 'accepted' ? undefined : errorTexts.killed;
}

function nameOf({ bootId }: CommandRecord, { pid, startTime }: NamedProcess): ProcessName {
  return { bootId, pid, startTime };
}

/**
 * The record as it is from now on, where the command is lost; undefined where somebody has it, or nobody any more: one that was
 * deleted is removed. Without a place to write it is only told.
 */
export async function settleCommand(
  ctx: SettleContext,
  key: string,
  waitMs = 0,
): Promise<CommandRecord | undefined> {
  const work = async (): Promise<CommandRecord | undefined> => {
    const record = await readRecord(ctx, key);
    if (record === undefined || record === 'damaged') return undefined;
    if (await isCancelled(ctx, key, record)) return await forgetDeleted(ctx, key, record);
    const error = findLoss(record, await findBootId(ctx.paths));
    return error === undefined ? undefined : await settle(ctx, record, error);
  };
  return await underLock(ctx, key, work, waitMs);
}

/** Assumes the command's lock. */
async function forgetDeleted(ctx: SettleContext, key: string, record: CommandRecord): Promise<undefined> {
  await endLedGroup(ctx, record);
  await removeCommand(ctx, key, record);
}

/** For one that could not be started. */
export async function failCommand(ctx: SettleContext, key: string, error: string, waitMs = 0): Promise<void> {
  const work = async (): Promise<void> => {
    const record = await readRecord(ctx, key);
    if (record === undefined || record === 'damaged' || record.state.kind !== 'accepted') return;
    await settle(ctx, record, error);
  };
  await underLock(ctx, key, work, waitMs);
}

/** For one whose configuration cannot be read, which has changed since it was taken: whoever asks for it is told. Throws the error. */
export async function failUnconfigured(
  ctx: SettleContext,
  id: string,
  { error, waitMs }: { error: unknown; waitMs: number },
): Promise<never> {
  if (error instanceof ConfigError) await failCommand(ctx, commandKey(id), describeError(error), waitMs);
  throw error;
}

/** Undefined where it was deleted meanwhile. Assumes the command's lock. */
export async function settle(
  ctx: SettleContext,
  record: CommandRecord,
  error: string,
): Promise<CommandRecord | undefined> {
  const { state, ...rest } = record;
  const key = commandKey(record.jobId);
  await endLedGroup(ctx, record);
  const ended: EndedState = {
    kind: 'failed',
    ...('startedAt' in state && state.startedAt !== undefined ? { startedAt: state.startedAt } : {}),
    ...{ endedAt: ctx.clock.now().toISOString(), exitCode: -1, error },
  };
  const settled = { ...rest, state: ended };
  try {
    await writeRecord(ctx, settled);
    // Asked after the write: a note that comes later finds an end, and whoever wrote it removes that.
    if (await isCancelled(ctx, key, record)) return await forgetDeleted(ctx, key, record);
    ctx.log.warning(`command ${record.jobId}: ${error}`);
  } catch (failure) {
    ctx.log.error(`cannot settle command ${record.jobId} (${error}): ${describeError(failure)}`);
  }
  return settled;
}

/**
 * Ends the group of a command that nobody runs, as long as its leader is there and it is ours to end; the rest is its unit's. Assumes
 * the command's lock.
 */
export async function endLedGroup(
  { paths, clock, log }: Pick<SettleContext, 'paths' | 'clock' | 'log'>,
  record: CommandRecord,
): Promise<void> {
  const { state, jobId } = record;
  if (state.kind !== 'running' || state.group === undefined) return;
  // Without a directory for its mark no boot is known, and nothing is ours to end.
  const bootNow = await findBootId(paths).catch(() => undefined);
  const isOver = await endGroup(nameOf(record, state.group), bootNow, { graceMs: 0, clock });
  if (!isOver) log.warning(`command ${jobId}: some of what it has left does not end`);
}

/** Tells whoever runs a command to end it, where no note can. */
export async function stopRunner(
  { paths }: Pick<SettleContext, 'paths'>,
  record: CommandRecord,
): Promise<void> {
  const { state } = record;
  if (state.kind !== 'running') return;
  const bootNow = await findBootId(paths).catch(() => undefined);
  if (!isAlive(nameOf(record, state.runner), bootNow)) return;
  try {
    process.kill(state.runner.pid, 'SIGTERM');
  } catch {
    // It has ended by itself.
  }
}

/** Undefined where another has it. The lock's file goes with it: the command has ended, or is no more. */
export async function underLock<Value>(
  { paths, command, runId, clock }: SettleContext,
  key: string,
  work: () => Promise<Value>,
  waitMs = 0,
): Promise<Value | undefined> {
  const request = { command: `reeve ${command}`, runId, clock, waitMs };
  const lock = await acquireLock(paths.locksDir, commandLock(key), request).catch((error: unknown) => {
    if (error instanceof BusyError) return undefined;
    throw error;
  });
  if (lock === undefined) return undefined;
  try {
    return await work();
  } finally {
    lock.retire();
  }
}
