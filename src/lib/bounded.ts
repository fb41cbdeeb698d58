// Many requests at once, but not all: a fleet's worth of them would only queue up and time out.

/** Results in the items' order. The first error ends it; what has begun then is waited for. */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  limit: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await run(item);
  };
  const workers = Array.from({ length: Math.min(limit, items.length) }, work);
  const settled = await Promise.allSettled(workers);
  const failure = settled.find((worker) => worker.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
  return results;
}
