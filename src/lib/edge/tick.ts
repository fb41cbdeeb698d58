// One tick: the balancer first and Caddy after it, so that a new domain never leads nowhere. What one of the two refuses
// keeps the other from nothing.
import { describeError, ReeveError } from '../errors.ts';
import { publishStatus } from '../publish/status-writer.ts';
import { writeDocumentIfChanged } from '../state/document.ts';
import { version } from '../version.ts';
import { applyPush, describePush, isLost, type Pushed } from './apply-push.ts';
import type { EdgeChange } from './balancer.ts';
import { type EdgeDocument, edgeDocument, edgePath } from './documents.ts';
import type { EdgeFacts } from './facts.ts';
import { type GatheredEdge, gatherEdge } from './gather.ts';
import { recordChanges } from './history.ts';
import { type EdgePlan, planEdge } from './plan.ts';
import { isSameDocument } from './push.ts';
import { reportEdge, type Trouble } from './report.ts';
import type { EdgeSession } from './session.ts';

export type EdgeTick = {
  /** What was done, or would be. */
  changes: readonly EdgeChange[];
  /** What is not as it should be. */
  troubles: readonly Trouble[];
  routes: EdgePlan['routes'];
};

/** Throws where the shards cannot be read; everything else is a trouble of the result. */
export async function runTick(session: EdgeSession): Promise<EdgeTick> {
  const gathered = await gatherEdge(session);
  const { facts } = gathered;
  const plan = planEdge(facts);
  const troubles = rejections(facts);
  const balanced = await attempt(troubles, 'balancer', () => session.balancer.apply(plan.routes));
  const pushed = await attempt(troubles, 'caddy', () => applyPush(session, facts, plan));
  const changes = [...(balanced ?? []), ...(pushed?.change === undefined ? [] : [pushed.change])];
  const inForce = balanced !== undefined && pushed !== undefined;
  const memory = remember(session, gathered, { plan, pushed, inForce });
  await writeDocumentIfChanged(edgePath(session.ctx.paths), edgeDocument, memory);
  await recordChanges(session.ctx, changes);
  const look = { facts, plan, memory, troubles, force: changes.length > 0 };
  await attempt(troubles, 'status', () => publishTick(session, look));
  return { changes, troubles, routes: plan.routes };
}

/** The same look without a change: what a tick would do. */
export async function compareOnly(session: EdgeSession): Promise<EdgeTick> {
  const { facts } = await gatherEdge(session);
  const { routes } = planEdge(facts);
  const troubles = rejections(facts);
  const state = await attempt(troubles, 'balancer', () => session.balancer.compare(routes));
  const changes: EdgeChange[] = [...(state?.changes ?? [])];
  if (facts.live.kind === 'unreadable') troubles.push(troubleOf('caddy', facts.live.error));
  else if (!isSameDocument(facts.live.text, session.balancer.buildCaddyDocument(routes)))
    changes.push(describePush(session, facts));
  return { changes, troubles, routes };
}

type Done = { plan: EdgePlan; pushed: Pushed | undefined; inForce: boolean };

function remember(
  { ctx, caddy }: EdgeSession,
  { facts, listing }: GatheredEdge,
  { plan, pushed, inForce }: Done,
): EdgeDocument {
  const { memory } = facts;
  const isSent = pushed?.change !== undefined;
  const known = pushed?.textHash === undefined ? null : { inputs: plan.inputs, textHash: pushed.textHash };
  return {
    listing,
    shards: Object.fromEntries(facts.shards.map((shard) => [shard.node, shard])),
    missingSince: plan.missingSince,
    known: pushed === undefined ? memory.known : known,
    lastReloadAt: isSent ? ctx.clock.now().toISOString() : memory.lastReloadAt,
    // Where something failed, what was in force before: a node whose shard is another by now finds no answer in it.
    applied: inForce ? plan.acknowledgeable : memory.applied,
    repairs: memory.repairs + (isSent && isLost(facts) ? 1 : 0),
    caddy,
  };
}

type Look = {
  facts: EdgeFacts;
  plan: EdgePlan;
  memory: EdgeDocument;
  troubles: readonly Trouble[];
  force: boolean;
};

async function publishTick(
  session: EdgeSession,
  { facts, plan, memory, troubles, force }: Look,
): Promise<void> {
  const { ctx, edge, store, balancer } = session;
  const nodeId = edge.edgeId;
  const { lastReloadAt, applied, repairs } = memory;
  const rejected = facts.rejected.map(({ node, subject, reason }) => ({ node, subject, reason }));
  const report = reportEdge(
    {
      now: facts.now,
      routes: plan.routes,
      lastReloadAt,
      troubles,
      edge: { balancer: balancer.name, applied, rejected, repairs },
    },
    { nodeId, agentId: edge.agentId, agentVersion: edge.agentVersion, reeveVersion: version },
  );
  await publishStatus({ ctx, cluster: edge, store, nodeId, role: 'edge' }, { ...report, force });
}

function rejections({ rejected }: EdgeFacts): Trouble[] {
  return rejected.map(({ node, subject, reason }) => ({ subject: `${node} ${subject}`, message: reason }));
}

/** Undefined where it failed, which is one of the troubles then. */
async function attempt<T>(
  troubles: Trouble[],
  subject: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    troubles.push(troubleOf(subject, error));
    return undefined;
  }
}

function troubleOf(subject: string, error: unknown): Trouble {
  return { subject, message: describeError(error), error };
}
