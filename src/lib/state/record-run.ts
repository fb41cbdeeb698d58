// A concern's run with its record around it: begun before the work, ended however the work ends.
import type { BaseContext } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { ExitCode } from '../exit-codes.ts';
import { exitCodeOf, type Outcome } from '../outcome.ts';
import { endRun, type RunStep, recordStep, startRun } from './run-record.ts';

/** What the work can tell about itself while it goes on. */
export type RunTeller = { tell(step: RunStep): Promise<void> };

export type RunStart = {
  step?: RunStep;
  /** The work is done even where its begin cannot be written down: on a full disk, traffic is worth more than its record. */
  goesOnUnrecorded?: boolean;
};

/** What the work throws is recorded and thrown on. Assumes that the concern's lock is held. */
export async function recordRun(
  { paths, runId, clock, log }: Pick<BaseContext, 'paths' | 'runId' | 'clock' | 'log'>,
  concern: string,
  work: (run: RunTeller) => Promise<Outcome>,
  { goesOnUnrecorded = false, ...first }: RunStart = {},
): Promise<Outcome> {
  const run = { concern, runId, pid: process.pid, ...first };
  const about = { paths, now: clock.now(), log };
  let record = await startRun(about, run).catch((error: unknown) => {
    if (!goesOnUnrecorded) throw error;
    log.warning(`cannot record the run: ${describeError(error)}`);
    return undefined;
  });
  const tell = async (step: RunStep): Promise<void> => {
    record = await recordStep(paths, record ?? (await startRun(about, run)), step);
  };
  const end = async (how: Omit<Parameters<typeof endRun>[2], 'now'>): Promise<void> => {
    record = await endRun(paths, record ?? (await startRun(about, run)), { now: clock.now(), ...how });
  };
  try {
    const outcome = await work({ tell });
    await end({ outcome: outcome.outcome, exitCode: exitCodeOf(outcome) });
    return outcome;
  } catch (error) {
    const exitCode = error instanceof ReeveError ? error.exitCode : ExitCode.internal;
    const outcome = exitCode === ExitCode.busy ? 'busy' : 'failed';
    await end({ outcome, exitCode, error: describeError(error) }).catch((second: unknown) => {
      log.warning(`cannot record the failure: ${describeError(second)}`);
    });
    throw error;
  }
}
