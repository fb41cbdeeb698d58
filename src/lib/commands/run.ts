// `reeve command run ID`: one command from its record to its end, once. Its lock says that nobody else runs it; its record is
// written before each step, so that no other process begins it again.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { renderOutput } from '../agenda/output.ts';
import { errorTexts, type JobRequest, jobLimitMs } from '../agenda/wire.ts';
import { childEnvironment } from '../config/environment.ts';
import { requireSection } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, InputError } from '../errors.ts';
import { isSystemdRunning, runSystemctl } from '../exec/systemd.ts';
import { findBootId } from '../host/boot.ts';
import { readStartTime } from '../host/processes.ts';
import { acquireLock } from '../lock/flock.ts';
import { commandLock } from '../lock/names.ts';
import type { Outcome } from '../outcome.ts';
import { type CommandEnd, runCommand } from '../runner/run.ts';
import { findUser } from '../runner/user.ts';
import { isCancelled, readRecord, removeCommand, writeOutput, writeRecord } from './book.ts';
import { toEndedState } from './end.ts';
import { keepLiveOutput } from './live-output.ts';
import { type CommandRecord, commandKey, isEnded, type NamedProcess } from './records.ts';
import { findLoss, settle } from './settle.ts';

export type RunCommandOptions = { waitMs: number; deadlineMs?: number };

/** Between SIGTERM and SIGKILL. */
const killGraceMs = 5_000;
/** For output and record of an end: within the time that the unit has beside the command's. */
const patienceMs = 120_000;
const outputPatienceMs = 60_000;
const againMs = 2_000;
/** How soon a command that was deleted is told so, where no unit is stopped. */
const lookMs = 200;

/** `id`: the command's own, or its key. Throws BusyError where another process runs it. */
export async function runCommandById(ctx: Context, id: string, options: RunCommandOptions): Promise<Outcome> {
  const key = commandKey(id);
  const { paths, clock, signal, runId, command } = ctx;
  const request = { command: `reeve ${command}`, runId, clock, signal, waitMs: options.waitMs };
  const lock = await acquireLock(paths.locksDir, commandLock(key), request);
  try {
    return await runUnderLock(ctx, key, options);
  } finally {
    // It has ended, or is no more: its lock would be a file for ever.
    lock.retire();
  }
}

async function runUnderLock(ctx: Context, key: string, options: RunCommandOptions): Promise<Outcome> {
  const record = await readRecord(ctx, key);
  if (record === undefined) return { outcome: 'nothing-to-do', text: [`command ${key} is no more`] };
  if (record === 'damaged') throw new InputError(`cannot run command ${key}: its record is damaged`);
  const { jobId, state } = record;
  if (await isCancelled(ctx, key, record)) {
    await removeCommand(ctx, key, record);
    return renderDeleted(record, 'nothing-to-do');
  }
  if (isEnded(state)) return { outcome: 'nothing-to-do', text: [`command ${jobId} has ended`] };
  // Whoever ran it is gone, as its lock is ours.
  const loss =
    findLoss(record, await findBootId(ctx.paths)) ?? (state.kind === 'running' ? errorTexts.killed : '');
  if (loss === '') return await perform(ctx, record, options);
  const settled = await settle(ctx, record, loss);
  return settled === undefined ? renderDeleted(record, 'done') : renderEnd(settled);
}

type Running = CommandRecord & { state: Extract<CommandRecord['state'], { kind: 'running' }> };

async function perform(ctx: Context, record: CommandRecord, options: RunCommandOptions): Promise<Outcome> {
  const key = commandKey(record.jobId);
  const { state } = record;
  if (isEnded(state)) return renderEnd(record);
  const running: Running = {
    ...record,
    state: {
      kind: 'running',
      request: state.request,
      startedAt: ctx.clock.now().toISOString(),
      runner: nameProcess(process.pid),
    },
  };
  await writeRecord(ctx, running);
  const watch = watchCancel(ctx, key, record);
  try {
    const end = await runRequest(ctx, running, { ...options, signal: watch.signal });
    return await finish(ctx, key, running, end);
  } finally {
    watch.stop();
  }
}

async function finish(ctx: Context, key: string, running: Running, end: CommandEnd): Promise<Outcome> {
  const { jobId } = running;
  if (await isCancelled(ctx, key, running)) {
    await removeCommand(ctx, key, running);
    return renderDeleted(running, 'done');
  }
  const { maxOutputBytes } = requireSection(ctx.config, 'commands');
  const { startedAt } = running.state;
  const stopReason = end.kind === 'cancelled' ? await findStopReason() : '';
  const ended = { ...running, state: toEndedState(end, { startedAt, now: ctx.clock.now(), stopReason }) };
  const output = renderOutput(end.output, maxOutputBytes);
  const begunMs = performance.now();
  const outputWaits = { what: `the output of command ${jobId}`, lastMs: begunMs + outputPatienceMs };
  // How it ended counts for more than what it said.
  await writePatiently(ctx, outputWaits, () => writeOutput(ctx, key, output)).catch((error: unknown) => {
    ctx.log.error(`the output of command ${jobId} is lost: ${describeError(error)}`);
  });
  const endWaits = { what: `the end of command ${jobId}`, lastMs: begunMs + patienceMs };
  await writePatiently(ctx, endWaits, () => writeRecord(ctx, ended));
  // Deleted meanwhile: whoever did that has left it to us, or waits for our lock.
  if (await isCancelled(ctx, key, running)) await removeCommand(ctx, key, running);
  return renderEnd(ended);
}

/** Nobody else knows how it ended: a disk that is full for a while is waited for. */
async function writePatiently(
  ctx: Context,
  { what, lastMs }: { what: string; lastMs: number },
  write: () => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (ctx.signal.aborted || performance.now() > lastMs) throw error;
      ctx.log.warning(`${what} waits for its file: ${describeError(error)}`);
    }
    await ctx.clock.sleep(againMs, ctx.signal);
  }
}

type RequestOptions = RunCommandOptions & { signal: AbortSignal };

async function runRequest(ctx: Context, running: Running, options: RequestOptions): Promise<CommandEnd> {
  const { user, maxOutputBytes, liveOutput } = requireSection(ctx.config, 'commands');
  const { request } = running.state;
  const scratchDir = join(ctx.paths.runDir, 'commands');
  const live = liveOutput ? keepLiveOutput(ctx, commandKey(running.jobId), maxOutputBytes) : undefined;
  let named: Promise<void> = Promise.resolve();
  try {
    const { ids, env } = await findUser(options, user);
    await mkdir(scratchDir, { recursive: true, mode: 0o700 });
    const spec = { ...describeRequest(request, env), ...(ids === undefined ? {} : { user: ids }) };
    return await runCommand(spec, {
      ...{ deadlineMs: options.deadlineMs ?? jobLimitMs, killGraceMs, maxOutputBytes, scratchDir },
      signal: options.signal,
      onStarted: (pid) => {
        named = nameGroup(ctx, running, pid);
      },
      sink: (chunk) => live?.add(chunk),
    });
  } catch (error) {
    const output = { bytes: new Uint8Array(), isCut: false };
    // Stopped or deleted on the way to its start.
    if (options.signal.aborted) return { kind: 'cancelled', output };
    return { kind: 'not-started', message: describeError(error), output };
  } finally {
    await Promise.all([named, live?.stop()]);
  }
}

function describeRequest(request: JobRequest, userEnv: Readonly<Record<string, string>>) {
  const given = request.env.map((text) => {
    const mark = text.indexOf('=');
    return [text.slice(0, mark), text.slice(mark + 1)] as const;
  });
  return {
    argv: request.mode === 'shell' ? { shell: request.shell } : ([request.name, ...request.args] as const),
    // Of a unit that is where we are ourselves; so it is everywhere.
    dir: request.dir.startsWith('/') ? request.dir : `/${request.dir}`,
    env: { ...childEnvironment(), ...userEnv, ...Object.fromEntries(given) },
  };
}

/** Should we be killed, whoever settles the command finds what we have left. Without it the command runs as well. */
async function nameGroup(ctx: Context, running: Running, pid: number): Promise<void> {
  const named = { ...running, state: { ...running.state, group: nameProcess(pid) } };
  await writeRecord(ctx, named).catch((error: unknown) => ctx.log.warning(describeError(error)));
}

function nameProcess(pid: number): NamedProcess {
  return { pid, startTime: readStartTime(pid) ?? '' };
}

/** Aborts when the command is deleted, or we are stopped. */
function watchCancel(
  ctx: Context,
  key: string,
  record: CommandRecord,
): { signal: AbortSignal; stop(): void } {
  const deleted = new AbortController();
  const ended = new AbortController();
  const look = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      if (await isCancelled(ctx, key, record).catch(() => false)) deleted.abort();
      await ctx.clock.sleep(lookMs, ended.signal);
    }
  };
  void look();
  return { signal: AbortSignal.any([ctx.signal, deleted.signal]), stop: () => ended.abort() };
}

/** A machine that goes down stops every unit. */
async function findStopReason(): Promise<string> {
  if (!isSystemdRunning()) return errorTexts.stopped;
  const options = { signal: AbortSignal.timeout(askMs), okStatuses: [0, 1, 2, 3, 4] };
  const state = await runSystemctl(['is-system-running'], options).catch(() => undefined);
  return state?.stdout.trim() === 'stopping' ? errorTexts.reboot : errorTexts.stopped;
}

/** The unit has little time then. */
const askMs = 2_000;

function renderDeleted({ jobId }: CommandRecord, outcome: 'done' | 'nothing-to-do'): Outcome {
  return { outcome, text: [`command ${jobId} was deleted`], data: { job: jobId } };
}

function renderEnd({ jobId, state }: CommandRecord): Outcome {
  if (state.kind === 'failed') {
    const { exitCode, error } = state;
    // The command's own failure is no failure of ours: it is told to whoever asked for it.
    return { outcome: 'done', text: [`command ${jobId}: failed, ${error}`], data: { job: jobId, exitCode } };
  }
  return { outcome: 'done', text: [`command ${jobId}: success`], data: { job: jobId, exitCode: 0 } };
}
