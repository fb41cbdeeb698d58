// Removes one volume when a person names it. Never started by a timer.
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Inventory, readInventory } from '../backup/inventory.ts';
import { openBackupStore } from '../backup/place.ts';
import { readRecorded } from '../backup/recorded.ts';
import { volumeName } from '../cluster/names.ts';
import { serviceKey } from '../cluster/wire.ts';
import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { openEngine } from '../docker/client.ts';
import type { Engine, VolumeSummary } from '../docker/types.ts';
import { describeError, InputError, StepError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { appendHistory } from '../state/history.ts';
import { findBackupFault } from './plan-volume.ts';
import { readServices } from './run.ts';

export type VolumeOptions = {
  project: string;
  service: string;
  name: string;
  noBackup: boolean;
  waitMs: number;
};

/** Refused while a container uses the volume, and without a newer verified backup unless told otherwise. */
export async function pruneVolume(ctx: Context, options: VolumeOptions): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'prune');
  const name = volumeName(options, options.name);
  const work = async (): Promise<Outcome> => {
    const engine = openEngine({ socket: cluster.docker.socket, log: ctx.log, signal: ctx.signal });
    try {
      const volume = await requireVolume(engine, name);
      if (!options.noBackup) await requireBackup(ctx, cluster, options, volume);
      await requireUnused(engine, name);
      await engine.removeVolume(name);
    } finally {
      engine.close();
    }
    const { project, service } = options;
    const about = { at: ctx.clock.now().toISOString(), run: ctx.runId, concern: 'prune', project, service };
    const reason = `a person named ${options.name}`;
    await appendHistory(ctx.paths, [{ ...about, action: 'removeVolume', reason, outcome: 'done' }]);
    return { outcome: 'done', text: [`removed volume ${name}`], data: { volume: name } };
  };
  return await withLock(ctx, 'reconcile', work, { waitMs: options.waitMs });
}

async function requireVolume(engine: Engine, name: string): Promise<VolumeSummary> {
  const volumes = await engine.listVolumes({ namePrefix: name });
  const volume = volumes.find((one) => one.name === name);
  if (volume === undefined) throw new InputError(`there is no volume ${name}`);
  return volume;
}

async function requireUnused(engine: Engine, name: string): Promise<void> {
  const containers = await engine.listContainers({ labels: [] });
  const users = containers.filter(({ volumes }) => volumes.includes(name));
  if (users.length === 0) return;
  const names = users.map((user) => user.name).join(', ');
  throw new StepError(`cannot remove volume ${name}: it is mounted by ${names}`);
}

/**
 * When it was made: the engine's word, or the birth of the directory that it has made for the volume, whichever is earlier.
 * Undefined where neither is known.
 */
async function findBirth({ createdAt, mountpoint }: VolumeSummary): Promise<Date | undefined> {
  const about = mountpoint === '' ? undefined : await stat(dirname(mountpoint)).catch(() => undefined);
  // File systems that do not keep it say 1970.
  const born = about === undefined || about.birthtimeMs <= 0 ? undefined : about.birthtime;
  if (createdAt === undefined || born === undefined) return createdAt ?? born;
  return born < createdAt ? born : createdAt;
}

/** Throws InputError unless a set that is newer than the volume has all of the service's databases, and nothing failed since. */
async function requireBackup(
  ctx: Context,
  cluster: NodeConfig,
  { project, service }: VolumeOptions,
  volume: VolumeSummary,
): Promise<void> {
  const key = serviceKey({ project, service });
  const recorded = (await readRecorded(ctx)).services[key];
  const inventory = await readBackups(ctx, cluster, key);
  const fault =
    inventory === undefined ? 'it has none' : findBackupFault(inventory, recorded, await findBirth(volume));
  if (fault === undefined) return;
  throw new InputError(
    `cannot remove volume ${volume.name}: no verified backup of ${key} is newer than it (${fault}): make one, or say --no-backup`,
  );
}

/** Of a service that is gone, where its last deploy put them. Undefined where it has none. */
async function readBackups(ctx: Context, cluster: NodeConfig, key: string): Promise<Inventory | undefined> {
  const { services, desiredKeys } = await readServices(ctx, cluster);
  const own = services.filter((service) => serviceKey(service) === key);
  // Those that are kept follow the desired ones, oldest first.
  const { backup } = (desiredKeys.has(key) ? own[0] : own.at(-1)) ?? {};
  if (backup === undefined) return undefined;
  try {
    const { store, prefix } = await openBackupStore({ cluster, signal: ctx.signal }, backup);
    return await readInventory(store, prefix);
  } catch (error) {
    throw new InputError(`cannot tell whether ${key} has a backup: ${describeError(error)}`, {
      cause: error,
    });
  }
}
