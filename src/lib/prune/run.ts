// Removes what nothing refers to any more: images, and ended runs of services that are gone.
import { parseDesired } from '../cluster/desired.ts';
import { deploysPrefix, desiredKey } from '../cluster/keys.ts';
import { ownershipOf, parseReplicaLabels } from '../cluster/names.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { openEngine } from '../docker/client.ts';
import type { ContainerSummary, Engine } from '../docker/types.ts';
import { describeError, InputError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { appendHistory } from '../state/history.ts';
import { readImagesUsed } from '../state/images-used.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type OwnContainer, type PruneStep, planPrune } from './plan.ts';

export type PruneOptions = { dryRun: boolean; waitMs: number };

export async function pruneImages(ctx: Context, options: PruneOptions): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'prune');
  const work = async (): Promise<Outcome> => {
    const engine = openEngine({ socket: cluster.docker.socket, log: ctx.log, signal: ctx.signal });
    try {
      const containers = await engine.listContainers({ labels: [] });
      const steps = planPrune({
        images: await engine.listImages(),
        usedImages: new Set(containers.flatMap(({ image, imageId }) => [image, imageId])),
        containers: findOwn(containers, cluster.nodeId),
        ...(await readServices(ctx, cluster)),
        known: await readImagesUsed(ctx),
      });
      return options.dryRun ? renderSteps(steps, 'pending') : await performSteps(ctx, engine, steps);
    } finally {
      engine.close();
    }
  };
  if (options.dryRun) return await work();
  return await withLock(ctx, 'reconcile', work, { waitMs: options.waitMs });
}

function findOwn(containers: readonly ContainerSummary[], nodeId: string): OwnContainer[] {
  return containers.flatMap(({ id, name, labels, state }) => {
    const identity = parseReplicaLabels(labels);
    if (identity === undefined || ownershipOf(labels, nodeId) !== 'ours') return [];
    const isRun = identity.cronFire !== undefined || identity.jobRun !== undefined;
    return [{ containerId: id, name, key: serviceKey(identity), state, isRun }];
  });
}

/** Without a valid desired state nothing can be told to be unused. */
export async function readServices(
  ctx: Context,
  cluster: { store: string; clusterId: string; nodeId: string },
): Promise<{ services: readonly DesiredService[]; desiredKeys: ReadonlySet<string> }> {
  const store = await openStore(cluster, { signal: ctx.signal });
  const stored = await store.get(desiredKey(cluster.clusterId, cluster.nodeId));
  if (stored === undefined) {
    throw new InputError(
      `cannot prune: there is no desired state for node ${cluster.nodeId} in ${cluster.store}`,
    );
  }
  const { services, rejected } = parseDesired(stored.text);
  if (rejected.length > 0) {
    throw new InputError(
      `cannot prune: the desired state has services that cannot be read: ${rejected[0]?.reason}`,
    );
  }
  const kept = await readKept(ctx, store, deploysPrefix(cluster.clusterId, cluster.nodeId));
  return { services: [...services, ...kept], desiredKeys: new Set(services.map(serviceKey)) };
}

/** What a rollback can go back to. One that cannot be read is no way back either. */
async function readKept(ctx: Context, store: Store, prefix: string): Promise<DesiredService[]> {
  const services: DesiredService[] = [];
  for (const { key } of await store.list(prefix)) {
    const stored = await store.get(key);
    if (stored === undefined) continue;
    try {
      services.push(...parseDesired(stored.text, key).services);
    } catch (error) {
      ctx.log.warning(`an earlier deploy is left out: ${describeError(error)}`);
    }
  }
  return services;
}

async function performSteps(ctx: Context, engine: Engine, steps: readonly PruneStep[]): Promise<Outcome> {
  const errors: string[] = [];
  const actions: PruneAction[] = [];
  for (const step of steps) {
    let error: string | undefined;
    try {
      if (step.action === 'removeImage') await engine.removeImage(step.reference);
      else await engine.removeContainer(step.containerId, { force: false });
    } catch (thrown) {
      error = `cannot remove ${describeSubject(step)}: ${describeError(thrown)}`;
      errors.push(error);
    }
    const at = ctx.clock.now().toISOString();
    const subject = step.action === 'removeImage' ? step.reference : step.container;
    const reason = `${subject}: ${step.reason}`;
    const outcome = error === undefined ? ('done' as const) : ('failed' as const);
    const event = { at, run: ctx.runId, concern: 'prune', action: step.action, reason, outcome };
    const failure = error === undefined ? {} : { error };
    await appendHistory(ctx.paths, [{ ...event, ...failure }]);
    actions.push({ ...step, outcome, ...failure });
  }
  const told = renderSteps(actions, errors.length === 0 ? 'done' : 'partial');
  return { ...told, text: [...told.text, ...errors] };
}

/** A step and, once it was tried, what came of it. */
type PruneAction = PruneStep & { outcome?: 'done' | 'failed'; error?: string };

function renderSteps(actions: readonly PruneAction[], outcome: 'pending' | 'done' | 'partial'): Outcome {
  const data = { actions };
  if (actions.length === 0) return { outcome: 'nothing-to-do', text: ['nothing to prune'], data };
  const verb = outcome === 'pending' ? 'would remove' : 'removed';
  const text = actions
    .filter(({ outcome: end }) => end !== 'failed')
    .map((action) => {
      if (action.action === 'removeRun') return `${verb} ${describeSubject(action)}: ${action.reason}`;
      const { reference, sizeBytes, reason } = action;
      return `${verb} ${reference} (${Math.round(sizeBytes / 1e6)} MB): ${reason}`;
    });
  return { outcome, text, data };
}

function describeSubject(step: PruneStep): string {
  return step.action === 'removeImage' ? `image ${step.reference}` : `container ${step.container}`;
}
