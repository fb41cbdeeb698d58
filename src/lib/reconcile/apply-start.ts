// Making, starting, admitting and aborting replicas. A release that does not come up is remembered, and takes nothing
// of the old one with it.
import { containerName, networkName } from '../cluster/names.ts';
import type { DesiredService } from '../cluster/wire.ts';
import { NameTakenError } from '../docker/errors.ts';
import { BusyError, describeError, StepError, UnavailableError } from '../errors.ts';
import { createRedactor, type Redact } from '../exec/redact.ts';
import { mergeEnv } from '../secrets/secrets.ts';
import { buildContainerSpec } from './container-spec.ts';
import { ensureImage } from './images.ts';
import { lastLogLines, renderLogTail } from './log-tail.ts';
import { startDeadlineMs } from './plan-replica.ts';
import { releasePort, reservePort } from './reserve-port.ts';
import { clearFailure, recordFailure, recordReplica } from './rollout-ledger.ts';
import type { Session } from './session.ts';
import type { StepOf } from './steps.ts';

/** A container that never served gets no long farewell. */
const abortGraceSeconds = 5;

export async function createReplica(session: Session, step: StepOf<'createReplica'>): Promise<void> {
  const { service, index, release, attempt } = step.args;
  const name = containerName({ ...service, index });
  await rememberingFailure(session, step.key, release, async (about) => {
    about.imageId = (await ensureImage(session, service.image)).id;
    const env = await resolveEnv(session, service);
    await recordReplica(session, step.key, name, startingRecord(session, service, { release, attempt }));
    try {
      const hostPort =
        service.ingress === null
          ? undefined
          : await reservePort(session, { ...service, index }, bindAddress(session));
      await makeAndStart(session, { service, index, env, hostPort });
    } catch (error) {
      await undoCreate(session, step, name);
      throw error;
    }
  });
}

/** One that exists and cannot be started, as when its port has gone to another program, makes way for a new one. */
export async function startReplica(session: Session, step: StepOf<'startReplica'>): Promise<void> {
  const { service, replica, release, attempt } = step.args;
  session.probes.delete(replica.name);
  const record = startingRecord(session, service, { release, attempt });
  await recordReplica(session, step.key, replica.name, record);
  try {
    await session.engine.startContainer(replica.containerId);
  } catch (error) {
    if (isBlameless(error)) throw error;
    await session.engine.removeContainer(replica.containerId, { force: true });
    await releasePort(session, replica);
    await recordReplica(session, step.key, replica.name, undefined);
    throw new StepError(`${describeError(error)}: it is made anew`, { cause: error });
  }
}

/** It serves: from the next look on it is routed to. */
export async function admitReplica(session: Session, { key, args }: StepOf<'admitReplica'>): Promise<void> {
  session.probes.delete(args.replica.name);
  await recordReplica(session, key, args.replica.name, undefined);
  await clearFailure(session, key, args.release);
}

export async function abortReplica(session: Session, { key, args }: StepOf<'abortReplica'>): Promise<void> {
  const { service, replica, release, why } = args;
  const details = await session.engine.inspectContainer(replica.containerId);
  const redact = createRedactor(secretValues(service, details?.env ?? []));
  const logs = await describeLogs(session, replica.containerId, redact);
  const error = `rollout aborted: ${redact(why)}${logs}`;
  const imageId = details?.imageId;
  await recordFailure(session, key, release, { error, ...(imageId === undefined ? {} : { imageId }) });
  session.probes.delete(replica.name);
  await session.engine.stopContainer(replica.containerId, abortGraceSeconds).catch(() => {
    // Removing by force, next, ends it as well.
  });
  await session.engine.removeContainer(replica.containerId, { force: true });
  await releasePort(session, replica);
  await recordReplica(session, key, replica.name, undefined);
  throw new StepError(error);
}

type NewContainer = {
  service: DesiredService;
  index: number;
  env: Readonly<Record<string, string>>;
  hostPort: number | undefined;
  /** Of a run, epoch milliseconds. */
  fireMs?: number | undefined;
};

export async function makeAndStart(session: Session, container: NewContainer): Promise<void> {
  const { engine, nodeId } = session;
  const spec = buildContainerSpec({ ...container, nodeId, bindAddress: bindAddress(session) });
  session.probes.delete(spec.name);
  await engine.ensureNetwork(networkName(container.service.project), {});
  try {
    const { id } = await engine.createContainer(spec);
    await engine.startContainer(id);
  } catch (error) {
    if (!(error instanceof NameTakenError)) throw error;
    throw new StepError(
      `cannot create container ${spec.name}: the name belongs to a container that is not ours: rename or remove that one`,
      { cause: error },
    );
  }
}

/**
 * What was made of a container that could not be started goes again, so that the next attempt starts clean. One that runs
 * all the same, as when only the engine's answer was lost, goes on as an attempt: it has yet to prove itself.
 */
async function undoCreate(session: Session, step: StepOf<'createReplica'>, name: string): Promise<void> {
  const { service, index } = step.args;
  try {
    const details = await session.engine.inspectContainer(name);
    const ours = details?.labels['reeve.node'] === session.nodeId;
    if (ours && details.state === 'running') return;
    if (ours) await session.engine.removeContainer(details.id, { force: true });
    await releasePort(session, { ...service, index });
    await recordReplica(session, step.key, name, undefined);
  } catch (error) {
    session.ctx.log.warning(`cannot clear away ${name}: ${describeError(error)}`);
  }
}

/** A failure of the release's own is remembered, with its image if it got that far; an engine that is away is not its fault. */
export async function rememberingFailure<T>(
  session: Session,
  key: string,
  release: string,
  attempt: (about: { imageId?: string }) => Promise<T>,
): Promise<T> {
  const about: { imageId?: string } = {};
  try {
    return await attempt(about);
  } catch (error) {
    if (!isBlameless(error))
      await recordFailure(session, key, release, { ...about, error: describeError(error) });
    throw error;
  }
}

function isBlameless(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof BusyError;
}

function startingRecord(
  session: Session,
  service: DesiredService,
  { release, attempt }: { release: string; attempt: number },
) {
  const now = session.ctx.clock.now();
  const deadline = new Date(now.getTime() + startDeadlineMs(service)).toISOString();
  return { phase: 'starting' as const, since: now.toISOString(), deadline, release, attempt };
}

export async function resolveEnv(
  session: Session,
  service: DesiredService,
): Promise<Readonly<Record<string, string>>> {
  if (service.secretRefs.length === 0) return service.env;
  const secrets = await session.secrets.open();
  return mergeEnv(service.env, await secrets.resolve(service.secretRefs));
}

/** What must not be told of a container's log: programs like to print what they cannot use. */
function secretValues({ secretRefs }: DesiredService, env: readonly string[]): string[] {
  const names = new Set(secretRefs.map(({ name }) => name));
  return env.flatMap((variable) => {
    const [name = '', ...value] = variable.split('=');
    return names.has(name) ? [value.join('=')] : [];
  });
}

async function describeLogs(session: Session, containerId: string, redact: Redact): Promise<string> {
  try {
    const logs = await session.engine.containerLogs(containerId, { tailLines: lastLogLines });
    const lines = renderLogTail(logs, redact);
    return lines === '' ? '; it logged nothing' : `; its last log lines:\n${lines}`;
  } catch (error) {
    return `; its log cannot be read: ${describeError(error)}`;
  }
}

function bindAddress(session: Session): string {
  return session.cluster.publish === 'advertise' ? session.privateIp : session.cluster.publish;
}
