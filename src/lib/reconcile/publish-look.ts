// What a look tells others: the routing, status.json and reeve.json, in the order that edges rely on.
import { describeError } from '../errors.ts';
import { publishStatus } from '../publish/status-writer.ts';
import { version } from '../version.ts';
import type { Facts, PlanOptions } from './facts.ts';
import { type Plan, planReconcile } from './plan.ts';
import { findDraining, reportLook, type Trouble, troublesOf } from './report-status.ts';
import { type PublishResult, prepareRouting, publishRouting } from './routing.ts';
import type { Session } from './session.ts';

/** What has been told in this activation. */
export type Told = {
  /** How many actions the last published status knew of. */
  reported: number;
  /** Why edges could not be told at the last look. */
  edgeErrors: readonly string[];
};

type Look = { facts: Facts; plan: Plan; troubles: readonly Trouble[]; options: PlanOptions };

/**
 * A backend that an edge sees go has left where reeve.json names it, and has failed where not: so what drains is named first.
 * If that cannot be written, the routing is all the same: edges then hold on to the backend for a while, and the drain's floor
 * outlasts them. A name without its shard, as after a crash in between, says nothing wrong.
 */
export async function publishRoutes(
  session: Session,
  told: Told,
  facts: Facts,
  options: PlanOptions,
): Promise<PublishResult> {
  const prepared = await prepareRouting(session, facts);
  const isChange = prepared.writes.some(({ decision }) => decision !== 'liveness');
  if (isChange && findDraining(facts).length > 0) {
    const plan = planReconcile(facts, options);
    await publishLook(session, told, { facts, plan, troubles: listTroubles(session, told, plan), options });
  }
  const result = await publishRouting(session, facts, prepared);
  told.edgeErrors = result.errors;
  return result;
}

/** A status that cannot be written is a trouble of the tick, and no reason to leave the services alone. */
export async function publishLook(session: Session, told: Told, look: Look): Promise<Trouble[]> {
  const force = session.actions.length > told.reported;
  const done = session.actions.length;
  try {
    await publishReport(session, { ...look, ...wholeNode(session, look) }, force);
    told.reported = done;
    return [];
  } catch (error) {
    return [{ key: 'status', message: describeError(error) }];
  }
}

export function listTroubles(session: Session, { edgeErrors }: Told, plan: Plan): Trouble[] {
  return [
    ...troublesOf(plan, session.faults),
    ...edgeErrors.map((message) => ({ key: 'routing/edge', message })),
  ];
}

/** What a run for one service leaves alone is told all the same: the node has not converged by looking away. */
function wholeNode(
  session: Session,
  { facts, plan, troubles, options }: Look,
): { plan: Plan; troubles: readonly Trouble[] } {
  if (options.only === undefined) return { plan, troubles };
  const whole = planReconcile(facts, { allowRemoval: options.allowRemoval });
  const known = new Set(troubles.map(({ key }) => key));
  const others = troublesOf(whole, session.faults).filter(({ key }) => !known.has(key));
  return { plan: whole, troubles: [...troubles, ...others] };
}

async function publishReport(
  session: Session,
  look: { facts: Facts; plan: Plan; troubles: readonly Trouble[] },
  force: boolean,
): Promise<void> {
  const { ctx, cluster, store, nodeId } = session;
  const reporter = {
    nodeId,
    agentId: cluster.agentId ?? nodeId,
    agentVersion: cluster.agentVersion,
    reeveVersion: version,
  };
  const report = reportLook(look.facts, look.plan, look.troubles, reporter);
  await publishStatus({ ctx, cluster, store, nodeId, role: 'app' }, { ...report, force });
}
