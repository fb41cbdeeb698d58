// A concern's run with its record around it: begun before the work, ended however the work ends.
import type { BaseContext } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { ExitCode } from '../exit-codes.ts';
import { exitCodeOf, type Outcome } from '../outcome.ts';
import { endRun, type RunStep, recordStep, startRun } from './run-record.ts';

/** What the work can tell about itself while it goes on. */
export type RunTeller = { tell(step: RunStep): Promise<void> };

/** What the work throws is recorded and thrown on. Assumes that the concern's lock is held. */
export async function recordRun(
  { paths, runId, clock, log }: Pick<BaseContext, 'paths' | 'runId' | 'clock' | 'log'>,
  concern: string,
  work: (run: RunTeller) => Promise<Outcome>,
  first: { step?: RunStep } = {},
): Promise<Outcome> {
  const run = { concern, runId, pid: process.pid, ...first };
  let record = await startRun({ paths, now: clock.now(), log }, run);
  const tell = async (step: RunStep): Promise<void> => {
    record = await recordStep(paths, record, step);
  };
  try {
    const outcome = await work({ tell });
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
