// A concern's run with its record around it: begun before the work, ended however the work ends.
import type { BaseContext } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { ExitCode } from '../exit-codes.ts';
import { exitCodeOf, type Outcome } from '../outcome.ts';
import { endRun, startRun } from './run-record.ts';

/** What the work throws is recorded and thrown on. Assumes that the concern's lock is held. */
export async function recordRun(
  { paths, runId, clock, log }: Pick<BaseContext, 'paths' | 'runId' | 'clock' | 'log'>,
  concern: string,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const record = await startRun({ paths, now: clock.now(), log }, { concern, runId, pid: process.pid });
  try {
    const outcome = await work();
    const exitCode = exitCodeOf(outcome);
    await endRun(paths, record, { now: clock.now(), outcome: outcome.outcome, exitCode });
    return outcome;
  } catch (error) {
    const exitCode = error instanceof ReeveError ? error.exitCode : ExitCode.internal;
    const outcome = exitCode === ExitCode.busy ? 'busy' : 'failed';
    const end = { now: clock.now(), outcome, exitCode, error: describeError(error) } as const;
    await endRun(paths, record, end).catch((second: unknown) => {
      log.warning(`cannot record the failure: ${describeError(second)}`);
    });
    throw error;
  }
}
