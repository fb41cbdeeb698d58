// A part of the time that telling the nodes may take: what all its calls have together.
import { type CloudCall, callCloud } from '../aws/call.ts';

export type Stage = Required<Pick<CloudCall, 'deadlineMs' | 'signal'>> & {
  /** Over, or interrupted. */
  readonly end: AbortSignal;
};

export function startStage(ms: number, signal: AbortSignal): Stage {
  const until = performance.now() + ms;
  return {
    signal,
    end: AbortSignal.any([AbortSignal.timeout(ms), signal]),
    /** What is left of it for the next call. */
    get deadlineMs() {
      return until - performance.now();
    },
  };
}

/** For work that is no single call: nobody waits for it beyond the stage. */
export async function awaitInStage<T>(stage: Stage, action: string, work: () => Promise<T>): Promise<T> {
  return await callCloud({ action, signal: stage.signal, deadlineMs: stage.deadlineMs }, work);
}
