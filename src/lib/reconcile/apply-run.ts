// Starting runs: of a schedule, recorded first and never twice; of a one-off service, once for as long as its container is kept.
import { containerName, ownershipOf, parseReplicaLabels } from '../cluster/names.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { describeError, StepError } from '../errors.ts';
import { makeAndStart, rememberingFailure, resolveEnv } from './apply-start.ts';
import { forgetFire, recordFire } from './cron-ledger.ts';
import type { Replica } from './facts.ts';
import { ensureImage } from './images.ts';
import { releaseOf } from './release.ts';
import { clearFailure, recordFailure } from './rollout-ledger.ts';
import type { Session } from './session.ts';
import type { StepOf } from './steps.ts';

export async function armSchedule(
  session: Session,
  { key, reason, args }: StepOf<'armSchedule'>,
): Promise<void> {
  await recordFire(session, key, args);
  if (args.isDoubtful) session.ctx.log.warning(`${key}: ${reason}`);
}

export async function skipFire(session: Session, { key, args }: StepOf<'skipFire'>): Promise<void> {
  await recordFire(session, key, args);
}

export async function forgetSchedule(session: Session, { key }: StepOf<'forgetSchedule'>): Promise<void> {
  await forgetFire(session, key);
}

/** What can fail without the fire comes before it is recorded, and is tried again; after that it is over, come what may. */
export async function startRun(session: Session, { key, args }: StepOf<'startRun'>): Promise<void> {
  const { service, fireMs, previous } = args;
  const release = releaseOf(service);
  const env = await rememberingFailure(session, key, release, async (about) => {
    about.imageId = (await ensureImage(session, service.image)).id;
    return await resolveEnv(session, service);
  });
  await recordFire(session, key, args);
  try {
    await removeAll(session, previous);
    await makeRun(session, service, { env, fireMs });
  } catch (error) {
    const told = `the run of ${new Date(fireMs).toISOString()} was not started: ${describeError(error)}`;
    await recordFailure(session, key, release, { error: told });
    throw new StepError(told, { cause: error });
  }
  await clearFailure(session, key, release);
}

/** Nothing is recorded: the container with the run's id is what tells that it has been started. */
export async function startJob(session: Session, { key, args }: StepOf<'startJob'>): Promise<void> {
  const { service, own, previous } = args;
  const release = releaseOf(service);
  await rememberingFailure(session, key, release, async (about) => {
    if (own !== undefined && (await hasStarted(session, own.containerId))) return;
    about.imageId = (await ensureImage(session, service.image)).id;
    const env = await resolveEnv(session, service);
    await removeAll(session, previous);
    // What a crash has left unstarted is made anew, as its definition may be of before.
    if (own !== undefined) await removeAll(session, [own]);
    await makeRun(session, service, { env });
  });
  await clearFailure(session, key, release);
}

type NewRun = { env: Readonly<Record<string, string>>; fireMs?: number };

/** A run that has started, although the engine's answer says otherwise or was lost, goes on; one that has not is cleared away. */
async function makeRun(session: Session, service: DesiredService, { env, fireMs }: NewRun): Promise<void> {
  const name = containerName({ ...service, index: 0 });
  try {
    await makeAndStart(session, { service, index: 0, env, hostPort: undefined, fireMs });
  } catch (error) {
    if (await isStartedRun(session, name, { service, fireMs })) return;
    throw error;
  }
}

async function isStartedRun(
  session: Session,
  name: string,
  { service, fireMs }: { service: DesiredService; fireMs: number | undefined },
): Promise<boolean> {
  try {
    const details = await session.engine.inspectContainer(name);
    if (details === undefined || ownershipOf(details.labels, session.nodeId) !== 'ours') return false;
    const { cronFire, jobRun } = parseReplicaLabels(details.labels) ?? {};
    if (fireMs === undefined ? jobRun !== service.jobRun?.id : cronFire !== fireMs) return false;
    if (details.state !== 'created') return true;
    await session.engine.removeContainer(details.id, { force: true });
  } catch (error) {
    session.ctx.log.warning(`cannot clear away ${name} of ${serviceKey(service)}: ${describeError(error)}`);
  }
  return false;
}

async function hasStarted(session: Session, containerId: string): Promise<boolean> {
  const details = await session.engine.inspectContainer(containerId);
  return details !== undefined && details.state !== 'created';
}

async function removeAll(session: Session, runs: readonly Replica[]): Promise<void> {
  for (const { containerId } of runs) await session.engine.removeContainer(containerId, { force: true });
}
