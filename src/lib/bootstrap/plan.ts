// When a certificate is to be renewed. Pure.

const dayMs = 24 * 60 * 60_000;
const soonMs = 30 * dayMs;

/** Thirty days before its end, or in the last third of its life where that is shorter. */
export function isRenewalDue({ from, to }: { from: Date; to: Date }, now: Date): boolean {
  const lifeMs = to.getTime() - from.getTime();
  return to.getTime() - now.getTime() < Math.min(soonMs, lifeMs / 3);
}
