// Whether to try again what was refused, and how long to wait before: doubling up to a cap, with jitter. Pure: chance comes in as a
// number.

export type BackoffPolicy = {
  firstMs: number;
  capMs: number;
  /** 0.5: from half of the wait to half as much again. */
  jitter: number;
};

/** Between claims that found nothing, or failed. */
export const claimBackoff: BackoffPolicy = { firstMs: 250, capMs: 5_000, jitter: 0.5 };
/** Between the attempts of one completion: four in all. */
export const completionBackoff: BackoffPolicy = { firstMs: 100, capMs: 400, jitter: 0.5 };
/** After a heartbeat that met a server's own trouble. */
export const heartbeatBackoff: BackoffPolicy = { firstMs: 5_000, capMs: 300_000, jitter: 0.5 };
/** Between the attempts to exchange a token for a certificate: five in all. */
export const bootstrapBackoff: BackoffPolicy = { firstMs: 1_000, capMs: 16_000, jitter: 0.5 };

/** Of how often or how slowly we ask, by the server or something between us: the same request is good at another hour. */
const passing: readonly number[] = [408, 425, 429];

export function isPassingStatus(status: number): boolean {
  return passing.includes(status);
}

/** The wait after so many failures in a row (from 1), never above the cap. `random` is from 0 up to, not including, 1. */
export function planBackoffMs(policy: BackoffPolicy, failures: number, random: number): number {
  const doublings = Math.min(Math.max(0, failures - 1), 52);
  const waitMs = Math.min(policy.capMs, policy.firstMs * 2 ** doublings);
  const jitteredMs = waitMs * (1 - policy.jitter + 2 * policy.jitter * random);
  return Math.round(Math.min(policy.capMs, jitteredMs));
}
