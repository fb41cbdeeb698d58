// Writes one node's desired state: conditional on the version that was read, merged again when somebody else was quicker.
// Order: announce removals, keep what is replaced unless it has been kept, replace it, and later keep what is there now, so
// that the next one need not. A kill between any two leaves valid documents, an announcement too many at most.
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
  /** What was written, and the name of what was kept before it, below the node's prefix. */
  replaced?: { text: string; keptAs: string | undefined };
};

const maxTries = 5;
/** Besides the present one. */
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
  const keptAs = await keepReplaced(writing, state);
  const text = renderRawDesired(document, { updatedAt, services: plan.services });
  const condition = stored === undefined ? { ifAbsent: true as const } : { ifMatch: stored.etag };
  await store.put(desiredKey(clusterId, node), text, condition);
  return { node, changes: plan.changes, updatedAt, written: true, replaced: { text, keptAs } };
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

/** Nothing where the listing has the very same: that was kept when it was written. Gives its name. */
async function keepReplaced(
  { ctx, target }: Writing,
  { node, document, stored, listing }: NodeState,
): Promise<string | undefined> {
  if (stored === undefined) return undefined;
  const name = nameOfDeploy(document.updatedAt, ctx.clock.now());
  if (listing?.get(name) !== stored.etag) await keepDeploy(target, node, name, stored.text);
  return name;
}

/** Named after the instant it was published at: kept again by a second try, it is the same object. */
function nameOfDeploy(updatedAt: string, now: Date): string {
  const publishedMs = Date.parse(updatedAt);
  return `deploys/${fileStamp(Number.isNaN(publishedMs) ? now : new Date(publishedMs))}.json`;
}

async function keepDeploy(
  { store, clusterId }: Target,
  node: string,
  name: string,
  text: string,
): Promise<void> {
  await store.put(`${nodePrefix(clusterId, node)}${name}`, text);
}

/**
 * Keeps what has been written, and of what there was before the last five. The deploy is done by then, so a failure here is
 * told and no more.
 */
export async function keepAndPrune(
  { ctx, target }: Writing,
  { node, listing }: NodeState,
  { replaced, updatedAt }: NodeResult,
): Promise<void> {
  if (replaced === undefined || updatedAt === undefined) return;
  const name = nameOfDeploy(updatedAt, ctx.clock.now());
  const before = [...(listing?.keys() ?? [])].filter((kept) => kept.startsWith('deploys/'));
  const kept = [
    ...new Set([...before, ...(replaced.keptAs === undefined ? [] : [replaced.keptAs]), name]),
  ].sort();
  try {
    await keepDeploy(target, node, name, replaced.text);
    const prefix = nodePrefix(target.clusterId, node);
    for (const old of kept.slice(0, -keptDeploys - 1)) await target.store.delete(`${prefix}${old}`);
  } catch (error) {
    ctx.log.warning(`the earlier deploys of ${node} are not brought up to date: ${describeError(error)}`);
  }
}
