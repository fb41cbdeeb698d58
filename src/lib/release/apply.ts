// Writes one node's desired state: conditional on the version that was read, merged again when somebody else was quicker.
// Order: announce removals, keep what is replaced, then replace it. A kill between any two leaves valid documents, an
// announcement too many at most.
import { desiredKey, nodePrefix, reeveKey, removalsKey } from '../cluster/keys.ts';
import { renderDocument } from '../cluster/wire.ts';
import type { BaseContext } from '../context.ts';
import { describeError, StepError } from '../errors.ts';
import { PreconditionError } from '../store/store.ts';
import { fileStamp } from '../time.ts';
import { type NodeState, readNode, type Target } from './gather.ts';
import type { Change, Edit, NodePlan } from './plan.ts';
import { parseProgress } from './progress.ts';
import { renderRawDesired } from './raw-document.ts';
import { parseRemovals, planRemovals } from './removals.ts';

export type NodeResult = {
  node: string;
  changes: readonly Change[];
  /** `updatedAt` of the desired state that is there now; undefined where there is none. */
  updatedAt: string | undefined;
  written: boolean;
  /** The name of what was replaced, below the node's prefix. */
  keptAs?: string | undefined;
};

const maxTries = 5;
const keptDeploys = 5;

type Writing = { ctx: Pick<BaseContext, 'clock' | 'log'>; target: Target };

/** Throws StepError when others keep being quicker, and what the store throws. */
export async function applyEdit(writing: Writing, state: NodeState, edit: Edit): Promise<NodeResult> {
  let current = state;
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const plan = edit(current.document);
    if (plan.changes.length === 0) return unchanged(current);
    try {
      return await writeNode(writing, current, plan);
    } catch (error) {
      if (!(error instanceof PreconditionError)) throw error;
    }
    writing.ctx.log.debug(`${state.node} was changed meanwhile: merging again`);
    await writing.ctx.clock.sleep(attempt * 50 * Math.random());
    current = await readNode(writing.target, state.node);
  }
  const key = desiredKey(writing.target.clusterId, state.node);
  throw new StepError(`cannot write "${key}": it was changed by others ${maxTries} times in a row`);
}

/** An instant for the new document that is later than the old one's, also where clocks differ. */
export function nextUpdatedAt(previous: string, now: Date): string {
  const previousMs = Date.parse(previous);
  if (Number.isNaN(previousMs) || previousMs < now.getTime()) return now.toISOString();
  return new Date(previousMs + 1).toISOString();
}

function unchanged({ node, stored, document }: NodeState): NodeResult {
  return { node, changes: [], updatedAt: stored && document.updatedAt, written: false };
}

async function writeNode(writing: Writing, state: NodeState, plan: NodePlan): Promise<NodeResult> {
  const { store, clusterId } = writing.target;
  const { node, document, stored } = state;
  const updatedAt = nextUpdatedAt(document.updatedAt, writing.ctx.clock.now());
  await announceRemovals(writing, state, plan, updatedAt);
  const keptAs = await keepDeploy(writing, state);
  const body = renderRawDesired(document, { updatedAt, services: plan.services });
  const condition = stored === undefined ? { ifAbsent: true as const } : { ifMatch: stored.etag };
  await store.put(desiredKey(clusterId, node), body, condition);
  return { node, changes: plan.changes, updatedAt, written: true, keptAs };
}

/** Before the removal can be seen: an unannounced one might be taken for an accident, and braked. */
async function announceRemovals(
  { target: { store, clusterId } }: Writing,
  { node, listing }: NodeState,
  { changes, services }: NodePlan,
  announcedAt: string,
): Promise<void> {
  const removed = changes.filter(({ action }) => action === 'remove');
  if (removed.length === 0 && listing?.has('removals.json') === false) return;
  const key = removalsKey(clusterId, node);
  const previous = await store.get(key);
  if (previous === undefined && removed.length === 0) return;
  const announced = previous && parseRemovals(previous.text);
  const removals = planRemovals({
    previous: announced,
    progress: parseProgress((await store.get(reeveKey(clusterId, node)))?.text),
    removed: removed.map(({ project, service }) => `${project}/${service}`),
    present: new Set(services.flatMap((service) => service.key ?? [])),
    announcedAt,
  });
  if (removed.length === 0 && removals.services.length === announced?.services.length) return;
  const condition = previous === undefined ? { ifAbsent: true as const } : { ifMatch: previous.etag };
  await store.put(key, renderDocument(removals), condition);
}

/** Under the instant it was published at: written again by a second try, it is the same object. Gives its name. */
async function keepDeploy(
  { ctx, target }: Writing,
  { node, document, stored }: NodeState,
): Promise<string | undefined> {
  if (stored === undefined) return undefined;
  const publishedMs = Date.parse(document.updatedAt);
  const stamp = fileStamp(Number.isNaN(publishedMs) ? ctx.clock.now() : new Date(publishedMs));
  const name = `deploys/${stamp}.json`;
  await target.store.put(`${nodePrefix(target.clusterId, node)}${name}`, stored.text);
  return name;
}

/** The deploy is done by then, so a failure here is told and no more. */
export async function pruneDeploys(
  { ctx, target: { store, clusterId } }: Writing,
  { node, listing }: NodeState,
  { keptAs }: NodeResult,
): Promise<void> {
  const before = [...(listing?.keys() ?? [])].filter((name) => name.startsWith('deploys/'));
  const kept = [...new Set([...before, ...(keptAs === undefined ? [] : [keptAs])])].sort();
  try {
    const prefix = nodePrefix(clusterId, node);
    for (const name of kept.slice(0, -keptDeploys)) await store.delete(`${prefix}${name}`);
  } catch (error) {
    ctx.log.warning(`earlier deploys of ${node} are not pruned: ${describeError(error)}`);
  }
}
