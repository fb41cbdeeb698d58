// How long a redeploy may take, so that its result is there before the control side gives up. Pure.

/** After which the control side gives up, unless REDEPLOY_TIMEOUT_SECS says otherwise. No deploy may last so long, whatever that says. */
export const usualResultMs = 900_000;
/** Between SIGTERM and SIGKILL for all that the script has started. */
export const killGraceMs = 10_000;
/** For the record of an end, where the disk is full. */
export const patienceMs = 60_000;
/** Between two pulls, and more than the timer of their unit has: a result that could not be sent at once waits so long. */
export const pullIntervalMs = 30_000;
/** With less of it hardly a deploy would begin. */
const leastRoomMs = 30_000;

const besidesMs = killGraceMs + patienceMs + pullIntervalMs;

export type RedeployTimes = {
  /** For one deploy. */
  timeoutMs: number;
  /** After which the control side gives up, where that is not as usual. */
  resultTimeoutMs?: number;
};

/** How long an action may have waited when its deploy begins. */
export function findRoomMs({ timeoutMs, resultTimeoutMs = usualResultMs }: RedeployTimes): number {
  return resultTimeoutMs - timeoutMs - besidesMs;
}

/** Of one deploy, for each to have time to begin. */
export function longestTimeoutMs(resultTimeoutMs = usualResultMs): number {
  return Math.min(resultTimeoutMs - besidesMs - leastRoomMs, usualResultMs - 1000);
}
