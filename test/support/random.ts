// Repeatable chance: the same seed gives the same history. mulberry32 is small and good enough for tests.

export type Random = { below(limit: number): number; pick<T>(items: readonly T[]): T };

export function createRandom(seed: number): Random {
  let state = (seed * 0x9e3779b1 + 0x6d2b79f5) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return { below, pick: (items) => items[below(items.length)] as (typeof items)[number] };
}
