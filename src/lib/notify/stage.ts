// A part of the time that telling the nodes may take: the deadline of all its calls together.
import { type CloudCall, callCloud } from '../aws/call.ts';

export type Stage = Required<Pick<CloudCall, 'deadlineMs' | 'signal'>> & { isOver(): boolean };

export function startStage(ms: number, signal: AbortSignal): Stage {
  const until = performance.now() + ms;
  return {
    signal,
    /** What is left, in whole seconds, as people are told of it. */
    get deadlineMs() {
      return Math.max(1, Math.ceil((until - performance.now()) / 1000)) * 1000;
    },
    isOver: () => signal.aborted || performance.now() >= until,
  };
}

/** For work that has no deadline of this stage itself. */
export async function awaitInStage<T>(stage: Stage, action: string, work: Promise<T>): Promise<T> {
  return await callCloud({ action, signal: stage.signal, deadlineMs: stage.deadlineMs }, (signal) => {
    const end = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return Promise.race([work, end]);
  });
}
