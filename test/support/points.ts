// At which of its points a program is killed. All of them take minutes for each kind: by default a few are taken that lie apart, other
// ones each day; `REEVE_TEST_POINTS=all`, as `scripts/test long` has it, takes each.
const most = 5;
const day = Math.floor(Date.now() / (24 * 60 * 60_000));

/** Ascending, from 1 to `count`; one of each of a few equal stretches. */
export function choosePoints(count: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index + 1);
  if (process.env['REEVE_TEST_POINTS'] === 'all' || count <= most) return all;
  const startOf = (stretch: number): number => Math.floor((stretch * count) / most);
  return Array.from({ length: most }, (_, stretch) => {
    const length = startOf(stretch + 1) - startOf(stretch);
    return startOf(stretch) + (day % length) + 1;
  });
}
