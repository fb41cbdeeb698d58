// Callers one after another, in the order they came.
import { waitUntil } from '../abort.ts';

export type Queue = <Value>(signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>;

/** Whoever leaves while waiting is told the signal's reason at once, and passed over. */
export function createQueue(): Queue {
  let last: Promise<void> = Promise.resolve();
  return async (signal, work) => {
    const before = last;
    let end = (): void => {};
    const own = new Promise<void>((resolve) => {
      end = resolve;
    });
    last = before.then(() => own);
    try {
      await waitUntil(signal, () => before);
      return await work();
    } finally {
      end();
    }
  };
}
