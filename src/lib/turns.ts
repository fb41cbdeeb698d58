// Work on one thing after another, in the order it was asked for; on different things at once.
import { waitUntil } from './abort.ts';

/** With a signal whoever waits may leave: the signal's reason is told at once, and the work is passed over. */
export type Turns = <Value>(key: string, work: () => Promise<Value>, signal?: AbortSignal) => Promise<Value>;

export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>();
  return async (key, work, signal) => {
    const before = last.get(key) ?? Promise.resolve();
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    // Who leaves ends at once, but the next one still waits for those before.
    const own = before.then(() => ended);
    last.set(key, own);
    void own.then(() => {
      if (last.get(key) === own) last.delete(key);
    });
    try {
      await (signal === undefined ? before : waitUntil(signal, () => before));
      return await work();
    } finally {
      end();
    }
  };
}
