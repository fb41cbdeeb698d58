// Taking replicas away: out of the routing, drained, stopped with their grace, removed. Volumes stay.
import { describeError } from '../errors.ts';
import { releasePort } from './reserve-port.ts';
import { recordReplica } from './rollout-ledger.ts';
import type { Session } from './session.ts';
import type { StepOf } from './steps.ts';

export async function drainReplica(session: Session, step: StepOf<'drainReplica'>): Promise<void> {
  const since = session.ctx.clock.now().toISOString();
  const record = { phase: 'draining' as const, since, drainUntil: null, reason: step.reason };
  await recordReplica(session, step.key, step.args.replica.name, record);
}

export async function waitForDrain(session: Session, step: StepOf<'waitForDrain'>): Promise<void> {
  const { replica, drainMs } = step.args;
  const earlier = session.rollouts.value.services[step.key]?.replicas[replica.name];
  const reason = earlier?.phase === 'draining' ? earlier.reason : step.reason;
  const now = session.ctx.clock.now();
  const drainUntil = new Date(now.getTime() + drainMs).toISOString();
  const record = { phase: 'draining' as const, since: now.toISOString(), drainUntil, reason };
  await recordReplica(session, step.key, replica.name, record);
}

/** Requests were sent until now, so what is left counts from here; what the floor allows is never exceeded. */
export async function acknowledgeDrain(session: Session, step: StepOf<'acknowledgeDrain'>): Promise<void> {
  const { replica, drainMs } = step.args;
  const record = session.rollouts.value.services[step.key]?.replicas[replica.name];
  if (record?.phase !== 'draining' || record.drainUntil === null) return;
  const now = session.ctx.clock.now();
  const untilMs = Math.min(Date.parse(record.drainUntil), now.getTime() + drainMs);
  await recordReplica(session, step.key, replica.name, {
    ...record,
    drainUntil: new Date(untilMs).toISOString(),
    acknowledgedAt: now.toISOString(),
  });
}

/** Asks the engine and does not wait: a long grace must not keep the service from being looked at. */
export async function stopReplica(session: Session, step: StepOf<'stopReplica'>): Promise<void> {
  const { replica, graceSeconds, afterwards } = step.args;
  const now = session.ctx.clock.now();
  await recordReplica(session, step.key, replica.name, {
    phase: 'stopping',
    since: now.toISOString(),
    killAt: new Date(now.getTime() + graceSeconds * 1000).toISOString(),
    afterwards,
    reason: step.reason,
  });
  session.stopsAsked.add(replica.name);
  session.probes.delete(replica.name);
  session.background.add(stopInBackground(session, replica.containerId, replica.name, graceSeconds));
}

/** Once removed, its port is free and nothing is known of it: the record goes last, as every step before is repeatable. */
export async function removeReplica(session: Session, step: StepOf<'removeReplica'>): Promise<void> {
  const { replica } = step.args;
  await session.engine.removeContainer(replica.containerId, { force: true });
  session.stopsAsked.delete(replica.name);
  session.probes.delete(replica.name);
  await releasePort(session, replica);
  await recordReplica(session, step.key, replica.name, undefined);
}

async function stopInBackground(
  session: Session,
  containerId: string,
  name: string,
  graceSeconds: number,
): Promise<void> {
  try {
    await session.engine.stopContainer(containerId, graceSeconds);
  } catch (error) {
    // Told to stop ourselves, we hang up on the engine, which goes on.
    if (session.ctx.signal.aborted) return;
    // The next look sees whether it runs; after its grace it is removed by force.
    session.ctx.log.warning(`cannot stop ${name}: ${describeError(error)}`);
  }
}
