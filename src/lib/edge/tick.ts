// One tick: the balancer first and Caddy after it, so that a new domain never leads nowhere. What one of the two refuses
// keeps the other from nothing, and what cannot be written down keeps neither from its routes.
import { describeError, ReeveError } from '../errors.ts';
import { type Publisher, publishStatus, repeatIfDue } from '../publish/status-writer.ts';
import { writeDocument, writeDocumentIfChanged } from '../state/document.ts';
import { version } from '../version.ts';
import { applyPush, describePush, type Pushed } from './apply-push.ts';
import type { EdgeChange } from './balancer.ts';
import { closeDelayField } from './caddy-document.ts';
import {
  type EdgeDocument,
  edgeDocument,
  edgePath,
  edgeShardsDocument,
  edgeShardsPath,
  type Settled,
} from './documents.ts';
import { isLost } from './explain.ts';
import type { EdgeFacts } from './facts.ts';
import { gatherEdge, glanceAtEdge } from './gather.ts';
import type { ShardList } from './gather-shards.ts';
import { recordChanges } from './history.ts';
import { type EdgePlan, isSettled, planEdge } from './plan.ts';
import { noteRefusal } from './refusal.ts';
import { reportEdge, type Trouble } from './report.ts';
import { isSameDocument } from './same-document.ts';
import type { EdgeSession } from './session.ts';

export type EdgeTick = {
  /** What was done, or would be. */
  changes: readonly EdgeChange[];
  /** What is not as it should be. */
  troubles: readonly Trouble[];
  domains: number;
  backends: number;
};

/** Throws where the shards cannot be read; everything else is a trouble of the result. */
export async function runTick(session: EdgeSession): Promise<EdgeTick> {
  const glanced = await glanceAtEdge(session);
  if (isSettled(glanced.glance)) {
    const rest = await restFrom(session, glanced.list);
    if (rest !== undefined) return rest;
  }
  const facts = await gatherEdge(session, glanced);
  const plan = planEdge(facts);
  const troubles = rejections(facts);
  const balanced = await attempt(troubles, 'balancer', () => session.balancer.apply(plan.routes));
  const pushed = await attempt(troubles, 'caddy', () => applyPush(session, facts, plan));
  const changes = [...(balanced ?? []), ...(pushed?.change === undefined ? [] : [pushed.change])];
  const endedAt = session.ctx.clock.now().toISOString();
  const done = { facts, list: glanced.list, plan, balanced, pushed, endedAt, troubles };
  const publish = (): Promise<unknown> =>
    attempt(troubles, 'status', () => publishTick(session, done, changes));
  await attempt(troubles, 'history', () => recordChanges(session.ctx, changes));
  await publish();
  // After what is published, which has to be tried again where it failed: only a tick without any trouble lets others rest.
  const isSaved = await attempt(troubles, 'state', () => saveMemory(session, remember(session, done), facts));
  if (isSaved === undefined) await publish();
  return { changes, troubles, ...countServed(plan.routes) };
}

/** The same look without a change: what a tick would do. */
export async function compareOnly(session: EdgeSession): Promise<EdgeTick> {
  const facts = await gatherEdge(session, await glanceAtEdge(session));
  const { routes } = planEdge(facts);
  const troubles = rejections(facts);
  const state = await attempt(troubles, 'balancer', () => session.balancer.compare(routes));
  const changes: EdgeChange[] = [...(state?.changes ?? [])];
  if (facts.live.kind === 'unreadable') troubles.push(troubleOf('caddy', facts.live.error));
  else if (!isSameDocument(facts.live.text, session.balancer.buildCaddyDocument(routes)))
    changes.push(describePush(session, facts, routes));
  return { changes, troubles, ...countServed(routes) };
}

type Done = {
  facts: EdgeFacts;
  list: ShardList;
  plan: EdgePlan;
  /** Undefined where it failed. */
  balanced: readonly EdgeChange[] | undefined;
  pushed: Pushed | undefined;
  endedAt: string;
  troubles: readonly Trouble[];
};

function remember({ caddy, memory }: EdgeSession, done: Done): EdgeDocument {
  const { facts, list, plan, balanced, pushed, endedAt, troubles } = done;
  const isSent = pushed?.change !== undefined;
  return {
    listing: list.listing,
    etags: list.etags,
    contents: list.contents,
    missingSince: plan.missingSince,
    settled: pushed === undefined ? memory.settled : settle(done),
    refused: pushed === undefined ? noteRefusal(facts, plan.inputs, caddyErrorIn(troubles)) : null,
    lastReloadAt: isSent ? endedAt : memory.lastReloadAt,
    // Where something failed, what was in force before: a node whose shard is another by now finds no answer in it.
    applied: balanced !== undefined && pushed !== undefined ? plan.acknowledgeable : memory.applied,
    repairs: memory.repairs + (isSent && isLost(facts) ? 1 : 0),
    caddy: pushed === undefined ? withoutRefused(caddy, troubles) : caddy,
  };
}

function caddyErrorIn(troubles: readonly Trouble[]): unknown {
  return troubles.find(({ subject }) => subject === 'caddy')?.error;
}

/** The file of Caddy has been replaced, and the old one still runs: it is asked for less until the next file. */
function withoutRefused(caddy: EdgeSession['caddy'], troubles: readonly Trouble[]): EdgeSession['caddy'] {
  const isRefused = troubles.some(({ message }) => message.includes(closeDelayField));
  return caddy === null || !isRefused ? caddy : { ...caddy, closeDelay: false };
}

/** The stamp is what was there before: only a tick that has changed nothing knows that it stands for what is wanted. */
function settle({ facts, plan, balanced, pushed, troubles }: Done): Settled | null {
  if (pushed?.textHash === undefined) return null;
  const isQuiet = balanced?.length === 0 && troubles.length === 0;
  const isHeld = Object.keys(plan.missingSince).length > 0;
  return {
    inputs: plan.inputs,
    textHash: pushed.textHash,
    ...(isQuiet && !isHeld && facts.stamp !== undefined && { stamp: facts.stamp }),
    ...countServed(plan.routes),
  };
}

/** The shards first: an etag that is remembered without its shard would never be fetched again. */
async function saveMemory({ ctx, memory }: EdgeSession, next: EdgeDocument, facts: EdgeFacts): Promise<true> {
  if (next.contents !== memory.contents || !facts.isRemembered) {
    const shards = Object.fromEntries(facts.shards.map((shard) => [shard.node, shard]));
    await writeDocument(edgeShardsPath(ctx.paths), edgeShardsDocument, { shards });
  }
  await writeDocumentIfChanged(edgePath(ctx.paths), edgeDocument, next);
  return true;
}

/** Undefined where nothing has been published that could be repeated. */
async function restFrom(session: EdgeSession, list: ShardList): Promise<EdgeTick | undefined> {
  const { ctx, memory } = session;
  const troubles: Trouble[] = [];
  const isPublished = await attempt(troubles, 'status', () => repeatIfDue(publisherOf(session)));
  if (isPublished === false) return undefined;
  // Shards that were merely written again are not to be fetched at each tick from now on.
  if (list.listing !== memory.listing) {
    const next = { ...memory, listing: list.listing, etags: list.etags };
    await attempt(troubles, 'state', () => writeDocument(edgePath(ctx.paths), edgeDocument, next));
  }
  const { domains = 0, backends = 0 } = memory.settled ?? {};
  return { changes: [], troubles, domains, backends };
}

function countServed(routes: EdgePlan['routes']): Pick<EdgeTick, 'domains' | 'backends'> {
  const served = routes.filter(({ backends }) => backends.length > 0);
  return { domains: served.length, backends: served.reduce((sum, { backends }) => sum + backends.length, 0) };
}

async function publishTick(session: EdgeSession, done: Done, changes: readonly EdgeChange[]): Promise<void> {
  const { edge, balancer } = session;
  const { facts, plan, troubles } = done;
  const nodeId = edge.edgeId;
  const { lastReloadAt, applied, repairs } = remember(session, done);
  const report = reportEdge(
    {
      now: facts.now,
      routes: plan.routes,
      lastReloadAt,
      troubles,
      edge: { balancer: balancer.name, applied, rejected: facts.rejected, repairs },
    },
    { nodeId, agentId: edge.agentId, agentVersion: edge.agentVersion, reeveVersion: version },
  );
  await publishStatus(publisherOf(session), { ...report, force: changes.length > 0 });
}

export function publisherOf({ ctx, edge, store }: EdgeSession): Publisher {
  return { ctx, cluster: edge, store, nodeId: edge.edgeId, role: 'edge' };
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
    if (!stopCodes.has(error.code)) troubles.push(troubleOf(subject, error));
    else if (!troubles.some((trouble) => trouble.subject === stopped.subject)) troubles.push(stopped);
    return undefined;
  }
}

/** Of what was under way when we were told to stop: no fault of the balancer's or Caddy's. */
const stopCodes: ReadonlySet<string> = new Set(['interrupted', 'aborted']);
const stopped: Trouble = { subject: 'tick', message: 'it was stopped before all was done' };

function troubleOf(subject: string, error: unknown): Trouble {
  return { subject, message: describeError(error), error };
}
