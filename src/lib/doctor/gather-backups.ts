// Looks at the backups that this node makes: what is known of them, whether their stores answer, and on which disks they are.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { judgeFreshness, type ServiceFreshness } from '../backup/freshness.ts';
import { storeUrlOf } from '../backup/location.ts';
import { openBackupStore } from '../backup/place.ts';
import { recordSchedules } from '../backup/record.ts';
import { readRecorded } from '../backup/recorded.ts';
import { findPolicyFault } from '../backup/retention/policy.ts';
import { type BackedUp, findOverlap, readBackedUp } from '../backup/services.ts';
import { mapBounded } from '../bounded.ts';
import { volumeName } from '../cluster/names.ts';
import { serviceKey } from '../cluster/wire.ts';
import type { NodeConfig } from '../config/rules.ts';
import { readDataRoot } from '../docker/about.ts';
import { openConnection } from '../docker/connection.ts';
import type { BackupFacts } from './judge-backups.ts';
import { describeSilence } from './silence.ts';
import type { World } from './world.ts';

/** Below the time that a check has. */
const deadlineMs = 4_000;

/** Throws what the store of the desired state throws. */
export async function gatherBackups(world: World, cluster: NodeConfig): Promise<BackupFacts[]> {
  const services = await readBackedUp(world, cluster);
  if (services.length === 0) return [];
  const recorded = recordSchedules(await readRecorded(world.base), services, new Set());
  const freshness = judgeFreshness(recorded, world.now);
  const dataRoot = await askDataRoot(cluster.docker.socket);
  return await mapBounded(services, 4, async (service) => {
    const key = serviceKey(service);
    const own = freshness.find((one) => one.key === key);
    const overlap = findOverlap(service, services);
    const fault = findPolicyFault(service.backup);
    const where = storeUrlOf(service.backup.bucket);
    return {
      ...{ key, where, freshness: own, overlap, policyFault: fault },
      storeError: await askStore(world, cluster, service, own),
      isOnSameDisk: await isOnSameDisk(service, dataRoot),
    };
  });
}

/** A directory of our own is made by the first backup. */
async function askStore(
  world: World,
  cluster: NodeConfig,
  { backup }: BackedUp,
  known: ServiceFreshness | undefined,
): Promise<string | undefined> {
  try {
    const { store, prefix } = await openBackupStore({ cluster, signal: world.signal }, backup);
    const path = directoryOf(backup.bucket);
    const isOwn = path?.startsWith(join(world.base.paths.stateDir, '/')) === true;
    if (isOwn && known?.databases.length === 0 && (await deviceOf(path)) === undefined) return undefined;
    await store.list(prefix);
    return undefined;
  } catch (error) {
    return describeSilence(error);
  }
}

function directoryOf(bucket: string): string | undefined {
  const url = storeUrlOf(bucket);
  return url.startsWith('file:///') ? fileURLToPath(url) : undefined;
}

/** Undefined where the engine does not tell: another check says why. */
async function askDataRoot(socket: string): Promise<string | undefined> {
  const connection = openConnection({ socket });
  try {
    return await readDataRoot(connection, deadlineMs);
  } catch {
    return undefined;
  } finally {
    connection.close();
  }
}

/** The engine keeps a volume below its own directory, which may have a disk of its own at any level. */
async function isOnSameDisk(service: BackedUp, dataRoot: string | undefined): Promise<boolean> {
  const directory = directoryOf(service.backup.bucket);
  const backups = directory === undefined ? undefined : await deviceOf(directory);
  if (backups === undefined || dataRoot === undefined) return false;
  const volumes = service.volumes.map(({ name }) =>
    join(dataRoot, 'volumes', volumeName(service, name), '_data'),
  );
  const devices = await Promise.all((volumes.length === 0 ? [dataRoot] : volumes).map(deviceOf));
  return devices.includes(backups);
}

/** Undefined where there is no such path. */
async function deviceOf(path: string): Promise<number | undefined> {
  return await stat(path).then(
    ({ dev }) => dev,
    () => undefined,
  );
}
