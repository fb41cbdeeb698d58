// At which of its points a program is killed. All of them take minutes for each kind: by default a few are taken that lie apart, other
// ones each day; `REEVE_TEST_POINTS=all`, as `scripts/test long` has it, takes each.
const most = 3;
const takesAll = process.env['REEVE_TEST_POINTS'] === 'all';
const day = Math.floor(Date.now() / (24 * 60 * 60_000));

/** Ascending, from 1 to `count`; one of each of a few equal stretches. */
export function choosePoints(count: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index + 1);
  if (takesAll || count <= most) return all;
  const startOf = (stretch: number): number => Math.floor((stretch * count) / most);
  return Array.from({ length: most }, (_, stretch) => {
    const length = startOf(stretch + 1) - startOf(stretch);
    return startOf(stretch) + (day % length) + 1;
  });
}

/**
 * An attempt ends a run at a point, checks what comes of it, and gives how many points it has seen. The first one goes through, and
 * tells how many there are.
 */
export async function attemptAtPoints(
  attempt: (point: number) => Promise<number>,
): Promise<{ taken: number; count: number }> {
  const count = await attempt(Number.POSITIVE_INFINITY);
  const points = choosePoints(count);
  for (const point of points) await attempt(point);
  return { taken: points.length, count };
}

/** Of points that only a run with a fault tells the end of: every other one, the first or the second of each pair. */
export const everyOther = takesAll ? { first: 1, step: 1 } : { first: 1 + (day % 2), step: 2 };
