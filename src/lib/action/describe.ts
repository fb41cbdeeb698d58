// An action in words and as data for people. What stands in it was written by others. Pure.
import { type Found, type FoundAction, redeployType, toMs } from '../actions/control/found.ts';
import { findApproval } from '../deploy-runner/key.ts';
import { usualResultMs } from '../deploy-runner/times.ts';
import { toLine } from '../report/printable.ts';
import { formatDuration } from '../time.ts';

export type Summary = {
  id: string;
  state: string;
  type: string | null;
  node: string | null;
  service: string | null;
  risk: string | null;
  /** ISO instants. */
  createdAt: string | null;
  updatedAt: string | null;
  reason: string | null;
  approvedBy: string | null;
  /** Why nothing can be done with it. */
  problem: string | null;
};

export function summarize(found: Found): Summary {
  const { id, state } = found;
  if (found.kind === 'refused') {
    return {
      ...{ id, state, type: null, node: null, service: null, risk: null, createdAt: null, updatedAt: null },
      ...{ reason: null, approvedBy: null, problem: found.reason },
    };
  }
  const { type, node, service, risk, createdAt, updatedAt, details } = found.action;
  return {
    ...{ id, state, type, node, service: service ?? null, risk: risk ?? null },
    ...{ createdAt: toInstant(createdAt), updatedAt: toInstant(updatedAt), reason: details.reason ?? null },
    approvedBy: findApproval(found.action)?.by ?? null,
    problem: findProblem(found),
  };
}

function findProblem({ action }: FoundAction): string | null {
  return action.type === redeployType && action.service === undefined ? 'it names no service' : null;
}

/** Null where it is none. */
export function toInstant(timestamp: number | string | undefined): string | null {
  const ms = toMs(timestamp);
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** What comes of an approval. */
export function describeEffect({ action }: FoundAction, timeoutMs = usualResultMs): string {
  const { type, node, service = '?' } = action;
  if (type !== redeployType) {
    return `actions of type ${type} are not carried out by reeve: another executor has to take it`;
  }
  return `node ${node} makes the containers of service ${service} anew, from the checkout that it has; without a result within ${formatDuration(timeoutMs)} it has failed`;
}

/** One line for a question. */
export function describeShortly({ id, action }: FoundAction): string {
  const { type, node, service, risk, details } = action;
  const what = service === undefined ? '' : ` of service ${service}`;
  const why = details.reason === undefined ? '' : `, because: ${details.reason}`;
  return toLine(`${id}: ${type}${what} on node ${node}, risk ${risk ?? 'not told'}${why}`);
}
