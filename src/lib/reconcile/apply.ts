// Does one step. Each handler writes down what it is about to do before it does it, unless doing it twice is harmless.
import { networkName } from '../cluster/names.ts';
import { PullError } from '../docker/errors.ts';
import { describeError } from '../errors.ts';
import { armSchedule, forgetSchedule, skipFire, startJob, startRun } from './apply-run.ts';
import { abortReplica, admitReplica, createReplica, startReplica } from './apply-start.ts';
import { acknowledgeDrain, drainReplica, removeReplica, stopReplica, waitForDrain } from './apply-stop.ts';
import { ensureImage } from './images.ts';
import { probe } from './probe.ts';
import { releasePort } from './reserve-port.ts';
import { clearFailure, recordReplica } from './rollout-ledger.ts';
import type { Session } from './session.ts';
import type { Step, StepAction, StepOf } from './steps.ts';

export type Handler<Action extends StepAction> = (session: Session, step: StepOf<Action>) => Promise<void>;

const handlers: { [Action in StepAction]: Handler<Action> } = {
  prepareImage: async (session, { args }) => {
    await ensureImage(session, args.service.image);
  },
  createReplica,
  startReplica,
  probeReplica,
  checkReplica,
  admitReplica,
  abortReplica,
  drainReplica,
  waitForDrain,
  acknowledgeDrain,
  stopReplica,
  removeReplica,
  resumeReplica: async (session, { key, args }) => {
    // Starting what runs is harmless, so the record goes last.
    await session.engine.startContainer(args.replica.containerId);
    session.stopsAsked.delete(args.replica.name);
    await recordReplica(session, key, args.replica.name, undefined);
  },
  forgetReplica,
  joinNetwork,
  recheckImage,
  armSchedule,
  skipFire,
  startRun,
  forgetSchedule,
  startJob,
};

export async function applyStep(session: Session, step: Step): Promise<void> {
  const handler = handlers[step.action] as Handler<StepAction>;
  await handler(session, step as StepOf<StepAction>);
}

async function probeReplica(session: Session, { args }: StepOf<'probeReplica'>): Promise<void> {
  const { service, replica, url } = args;
  const { timeoutMs, intervalMs } = service.healthCheck ?? { timeoutMs: 2000, intervalMs: 2000 };
  const answer = await probe(url, timeoutMs, session.ctx.signal);
  const earlier = session.probes.get(replica.name);
  session.probes.set(replica.name, {
    passes: answer.passed ? (earlier?.passes ?? 0) + 1 : 0,
    nextAt: new Date(session.ctx.clock.now().getTime() + intervalMs),
    last: answer.said,
  });
}

async function checkReplica(session: Session, { args }: StepOf<'checkReplica'>): Promise<void> {
  const { replica } = args;
  const details = await session.engine.inspectContainer(replica.containerId);
  const nextAt = session.ctx.clock.now();
  if (details?.state === 'running' && details.restartCount === 0) {
    session.probes.set(replica.name, { passes: 1, nextAt, last: 'it has stayed up' });
    return;
  }
  const restarts = details === undefined ? 'it is gone' : `it was restarted ${details.restartCount} times`;
  session.probes.set(replica.name, { passes: 0, nextAt, last: restarts, failed: restarts });
}

/** A network that cannot be joined is told and tried again by the next run; the container goes on serving. */
async function joinNetwork(session: Session, { args }: StepOf<'joinNetwork'>): Promise<void> {
  const { replica } = args;
  const name = networkName(replica.project);
  session.rechecked.add(`join ${replica.name}`);
  try {
    await session.engine.ensureNetwork(name, {});
    await session.engine.connectNetwork(name, replica.containerId, [replica.service]);
  } catch (error) {
    session.ctx.log.warning(`cannot join ${replica.name} to network ${name}: ${describeError(error)}`);
  }
}

/** A crash came between writing it down and making it, or between removing it and saying so. */
async function forgetReplica(session: Session, { key, args }: StepOf<'forgetReplica'>): Promise<void> {
  const [project = '', service = ''] = key.split('/');
  await releasePort(session, { project, service, index: Number(args.name.split('_').at(-1)) });
  await recordReplica(session, key, args.name, undefined);
}

/** The registry is asked once a run; another image under the failed tag, or one at last, may be tried at once. */
async function recheckImage(session: Session, { key, args }: StepOf<'recheckImage'>): Promise<void> {
  const { service, release, failure } = args;
  session.rechecked.add(`${key} ${release}`);
  try {
    const image = await ensureImage(session, service.image);
    if (image.id !== failure.imageId) await clearFailure(session, key, release);
  } catch (error) {
    // Still not to be had: the failure stands as it was told.
    if (!(error instanceof PullError)) throw error;
  }
}
