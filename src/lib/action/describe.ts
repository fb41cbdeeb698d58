// An action in words and as data for people. What stands in it was written by others. Pure.
import { isOpen, readEnd, toInstant } from '../actions/control/end.ts';
import { earlierRuns, type Found, type FoundAction, redeployType, toMs } from '../actions/control/found.ts';
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
  /** How it has ended; null where it has not, or nobody tells. */
  endedAt: string | null;
  endedBy: string | null;
  endReason: string | null;
  /** Why nothing can be done with it. */
  problem: string | null;
};

const noEnd = { endedAt: null, endedBy: null, endReason: null } as const;

export function summarize(found: Found): Summary {
  const { id, state } = found;
  if (found.kind === 'refused') {
    return {
      ...{ id, state, type: null, node: null, service: null, risk: null, createdAt: null, updatedAt: null },
      ...{ reason: null, approvedBy: null, ...noEnd, problem: found.reason },
    };
  }
  const { type, node, service, risk, createdAt, updatedAt, details } = found.action;
  return {
    ...{ id, state, type, node, service: service ?? null, risk: risk ?? null },
    ...{ createdAt: toInstant(createdAt), updatedAt: toInstant(updatedAt), reason: details.reason ?? null },
    approvedBy: findApproval(found.action)?.by ?? null,
    ...(isOpen(found) ? noEnd : describeEnd(found)),
    problem: findProblem(found),
  };
}

function describeEnd(found: FoundAction): Pick<Summary, 'endedAt' | 'endedBy' | 'endReason'> {
  const { at, by, reason } = readEnd(found);
  return { endedAt: at, endedBy: by, endReason: reason };
}

/** Those that are open before those that have ended, and of either the latest first. */
export function sortByTime(everywhere: readonly Found[]): Found[] {
  return everywhere.toSorted((a, b) => Number(isOpen(b)) - Number(isOpen(a)) || latestMs(b) - latestMs(a));
}

/** What is no action tells nothing by itself. */
function latestMs(found: Found): number {
  if (found.kind === 'refused') return found.isFile ? found.about.mtimeMs : 0;
  const { transitions, updatedAt, createdAt } = found.action;
  return toMs(transitions.at(-1)?.timestamp) ?? toMs(updatedAt) ?? toMs(createdAt) ?? 0;
}

/** What keeps it from going to its node; null where nothing does. */
export function findWait(found: Found, everywhere: readonly Found[]): string | null {
  if (found.kind === 'refused' || found.action.type !== redeployType) return null;
  const isNext = found.state === 'pending' || found.state === 'approved';
  return isNext && everywhere.some(({ state }) => state === 'running') ? earlierRuns : null;
}

function findProblem({ action }: FoundAction): string | null {
  return action.type === redeployType && action.service === undefined ? 'it names no service' : null;
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
