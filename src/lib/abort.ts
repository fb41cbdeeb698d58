// Work that does not hear a signal by itself, or not everywhere on its way.

/** What the work gives; throws the signal's reason as soon as it aborts, and leaves the work to itself then. */
export async function waitUntil<Value>(end: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  end.throwIfAborted();
  return await new Promise<Value>((resolve, reject) => {
    const leave = (): void => reject(end.reason);
    end.addEventListener('abort', leave);
    work()
      .then(resolve, reject)
      .finally(() => end.removeEventListener('abort', leave));
  });
}
