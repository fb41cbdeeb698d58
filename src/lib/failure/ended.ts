// What ExecStopPost= starts: a run that was killed could not end its record itself.
import { constants } from 'node:os';
import type { ServiceEnd } from '../config/environment.ts';
import type { BaseContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { isLockHeld } from '../lock/list-locks.ts';
import { isLockName } from '../lock/names.ts';
import type { Outcome } from '../outcome.ts';
import { appendHistory } from '../state/history.ts';
import { closeKilledRun, concernPattern, type RunRecord, readRun } from '../state/run-record.ts';

export async function recordEnd(
  ctx: BaseContext,
  { concern, end }: { concern: string; end: ServiceEnd | undefined },
): Promise<Outcome> {
  if (!concernPattern.test(concern)) throw new UsageError(`${JSON.stringify(concern)} is no concern`);
  if (end === undefined) {
    throw new UsageError('SERVICE_RESULT is not set: this is for ExecStopPost=, where systemd sets it');
  }
  const now = ctx.clock.now();
  const record = await readRun({ paths: ctx.paths, now, log: ctx.log }, concern);
  if (record === undefined || record.endedAt !== null || (await isUnderWay(ctx, record))) {
    return { outcome: 'nothing-to-do', text: [] };
  }
  const error = describeEnd(end);
  await closeKilledRun(ctx.paths, record, { now, exitCode: exitCodeOfEnd(end), error });
  await appendHistory(ctx.paths, [
    { at: now.toISOString(), run: record.runId, concern, action: 'end', reason: error, outcome: 'failed' },
  ]);
  return { outcome: 'done', text: [`run ${record.runId} of ${concern}: ${error}`] };
}

/** The record may be another's: an operator's run that our unit found busy. */
async function isUnderWay(ctx: BaseContext, { concern, pid }: RunRecord): Promise<boolean> {
  if (isLockName(concern)) return await isLockHeld(ctx.paths.locksDir, concern);
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function describeEnd({ result, code, status }: ServiceEnd): string {
  const how = describeHow(code, status);
  switch (result) {
    case 'timeout':
      return `killed by its unit (${how}): no end in time`;
    case 'oom-kill':
      return `killed (${how}): out of memory`;
    default:
      return `ended by ${how} without a word (${result})`;
  }
}

function describeHow(code: string | undefined, status = 'unknown'): string {
  if (code === undefined) return 'unknown means';
  return code === 'exited' ? `exit status ${status}` : `SIG${status}`;
}

/** 128+n for a signal, as a shell has it. */
function exitCodeOfEnd({ code, status = '' }: ServiceEnd): number {
  const number = Number(status);
  if (code === 'exited' && Number.isInteger(number)) return number;
  const signals: Readonly<Record<string, number | undefined>> = constants.signals;
  return 128 + (signals[`SIG${status}`] ?? constants.signals.SIGKILL);
}
