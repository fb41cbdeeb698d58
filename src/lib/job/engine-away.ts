// An engine that is away for a while, as it is restarted: whoever needs it waits for it.
import { describeError, UnavailableError } from '../errors.ts';
import type { JobSession } from './session.ts';

/** One that is restarted is back by then. */
const engineMs = 60_000;
const againMs = 500;

export type Absence = {
  /** It is there. */
  end(): void;
  /** It is not. `new`: with that it begins. What was asked for long was heard until then. */
  go(askedAtMs?: number): 'new' | 'known' | 'too-long';
};

/** By a clock that nobody sets. */
export function createAbsence(): Absence {
  let lostAtMs: number | undefined;
  return {
    end: () => {
      lostAtMs = undefined;
    },
    go: (askedAtMs = Number.POSITIVE_INFINITY) => {
      const nowMs = performance.now();
      if (nowMs - askedAtMs > engineMs) lostAtMs = undefined;
      const isNew = lostAtMs === undefined;
      lostAtMs ??= nowMs;
      if (isNew) return 'new';
      return nowMs - lostAtMs > engineMs ? 'too-long' : 'known';
    },
  };
}

/** Throws what was thrown last where the engine stays away for too long, and at once what it has said, or what the signal ended. */
export async function askEngine<Value>(
  { ctx, claim, requireGoingOn }: JobSession,
  signal: AbortSignal,
  ask: () => Promise<Value>,
): Promise<Value> {
  const absence = createAbsence();
  for (;;) {
    const askedAtMs = performance.now();
    try {
      return await ask();
    } catch (error) {
      requireGoingOn();
      if (!isAway(error, signal)) throw error;
      const length = absence.go(askedAtMs);
      if (length === 'too-long') throw error;
      if (length === 'new') ctx.log.warning(describeError(error), { job: claim.jobId });
    }
    await ctx.clock.sleep(againMs, signal);
  }
}

/** Not one that is silent: that has been waited for already. */
function isAway(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted || !(error instanceof UnavailableError)) return false;
  return error.code === 'engine' || error.code === 'unavailable';
}
