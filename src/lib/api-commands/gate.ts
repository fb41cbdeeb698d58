// So many at once, and the others after them in the order they came: what each of them holds in memory adds up.
import { waitUntil } from '../abort.ts';

export type Gate = <Value>(signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>;

/** Whoever leaves while waiting is told the signal's reason at once, and takes nobody's turn. */
export function createGate(most: number): Gate {
  let free = most;
  const waiting: (() => void)[] = [];
  const enter = async (signal: AbortSignal): Promise<void> => {
    if (free > 0) {
      free -= 1;
      return;
    }
    let begin = (): void => {};
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    waiting.push(begin);
    try {
      await waitUntil(signal, () => turn);
    } catch (error) {
      const place = waiting.indexOf(begin);
      // It was given a turn at the same moment.
      if (place < 0) leave();
      else waiting.splice(place, 1);
      throw error;
    }
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (signal, work) => {
    signal.throwIfAborted();
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
