// Work on one thing after another, in the order it was asked for; on different things at once.

/** Nobody else changes the same command meanwhile. */
export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>;

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const own = before.then(work, work);
    last.set(key, own);
    try {
      return await own;
    } finally {
      if (last.get(key) === own) last.delete(key);
    }
  };
}
