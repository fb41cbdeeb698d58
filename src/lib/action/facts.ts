// What nodes have reported, as plain values.
import type { Dispatched } from '../actions/control/found.ts';
import type { ActionResult } from '../deploy-runner/event.ts';

/** A result as it lies among the events of its node. */
export type Reported = {
  name: string;
  result: ActionResult;
  /** By this machine's clock. */
  arrivedAtMs: number;
};

/** What came of this dispatch and of no other of the same id, oldest first. */
export function findResults(
  dispatched: Dispatched,
  node: string,
  reported: readonly Reported[],
): readonly Reported[] {
  return reported.filter(({ result, arrivedAtMs }) => {
    if (result.node !== node) return false;
    if (result.key !== undefined && dispatched.key !== undefined) return result.key === dispatched.key;
    return arrivedAtMs >= dispatched.fromMs;
  });
}
