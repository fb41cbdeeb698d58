// The complete table of what is done about a step. Each answers with what it did; what it throws is its own failure, and the other
// steps go on.
import { isStill, removeEntry } from '../actions/leave.ts';
import { type ActionEnd, closeKey } from '../actions/markers.ts';
import type { EntryName } from '../actions/open.ts';
import { refuseAction, reportEnd, tellEnd, tellUnmarked } from '../actions/results.ts';
import { actionIdOf } from '../deploy-runner/key.ts';
import { buildDeployMark } from '../deploy-runner/script.ts';
import { killGraceMs } from '../deploy-runner/times.ts';
import { ReeveError, StepError } from '../errors.ts';
import { findBootId } from '../host/boot.ts';
import { endGroup, endMarked, type ProcessName } from '../host/processes.ts';
import { performDeploy } from './perform.ts';
import type { Session } from './session.ts';
import type { Step } from './steps.ts';

export type StepResult = {
  /** Empty where there is nothing to tell. */
  line: string;
  actionId?: string;
  service?: string;
  end?: Pick<ActionEnd, 'outcome' | 'reason' | 'exitCode'>;
};

export async function applyStep(session: Session, step: Step): Promise<StepResult> {
  switch (step.kind) {
    case 'settle':
      return await settle(session, step);
    case 'leave':
      return await leave(session, step);
    case 'report':
      await reportEnd(session.ctx, step.marker);
      await takeAlong(step);
      return describeEnd(step.marker, step.marker.state);
    case 'close':
      await closeKey(session.ctx, step.key);
      return { line: '' };
    case 'forget':
      if (await isStill(step.name, step.key)) await removeEntry(step.name);
      return { line: `${step.actionId}: ${step.reason}` };
    case 'refuse':
      return await refuse(session, step);
    case 'set-aside':
      return await setAside(session, step);
    case 'deploy': {
      const end = await performDeploy(session, step);
      return end === undefined ? { line: '' } : describeEnd(step, end);
    }
  }
}

type Settle = Extract<Step, { kind: 'settle' }>;

async function settle(session: Session, step: Settle): Promise<StepResult> {
  const { ctx, actions } = session;
  const { key, marker, reason } = step;
  const about = marker ?? { actionId: actionIdOf(key), key, actionType: 'redeploy', run: ctx.runId };
  const started = marker?.state.kind === 'started' ? marker.state : undefined;
  await endLeft(session, about, started?.group);
  const end: ActionEnd = {
    ...{ outcome: 'unknown', endedAt: ctx.clock.now().toISOString(), reason },
    ...(started === undefined ? {} : { startedAt: started.startedAt }),
  };
  await tellEnd(ctx, about, { node: actions.node, end });
  await takeAlong(step);
  return describeEnd(about, end);
}

/** Else it would be told of as a replay. What stays all the same is the next look's to forget, and to tell. */
async function takeAlong({ name, key }: { name?: EntryName; key: string }): Promise<void> {
  if (name === undefined) return;
  try {
    if (await isStill(name, key)) await removeEntry(name);
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
  }
}

/**
 * What the script has left. Throws while some of it is there: nothing is deployed beside it. A script that runs as another user may be
 * known by its group alone, which goes by its leader; of a unit all of this is systemd's to end.
 */
async function endLeft(
  { ctx }: Session,
  { actionId, key }: { actionId: string; key: string },
  script: ProcessName | undefined,
): Promise<void> {
  const options = { graceMs: killGraceMs, clock: ctx.clock };
  const bootNow = await findBootId(ctx.paths);
  const isGroupOver = script === undefined || (await endGroup(script, bootNow, options));
  const [[name, value] = []] = Object.entries(buildDeployMark(key));
  const isOver = (await endMarked(`${name}=${value}`, options)) && isGroupOver;
  if (!isOver) throw new StepError(`cannot end what ${actionId} has left: some of it stays`);
}

/** Told by each run, as long as it is so. */
async function leave(session: Session, step: Extract<Step, { kind: 'leave' }>): Promise<StepResult> {
  const { ctx, actions, quarantine } = session;
  const { name, key, actionId, marker, reason } = step;
  if (name === undefined) throw new StepError(reason);
  if (marker === 'unreadable') await tellUnmarked(ctx, { node: actions.node, actionId, key, reason });
  if (await isStill(name, key)) await quarantine.setAside(name);
  return describeEnd(step, { outcome: 'unknown', reason });
}

/** What cannot be moved keeps nothing else from leaving. */
async function setAside(
  { quarantine }: Session,
  { names, reason }: Extract<Step, { kind: 'set-aside' }>,
): Promise<StepResult> {
  const faults: unknown[] = [];
  for (const name of names) {
    await quarantine.setAside(name).catch((error: unknown) => {
      if (!(error instanceof ReeveError)) throw error;
      faults.push(error);
    });
  }
  if (faults.length === names.length) throw faults[0];
  return { line: `set aside: ${reason}`, end: { outcome: 'rejected', reason } };
}

async function refuse(session: Session, step: Extract<Step, { kind: 'refuse' }>): Promise<StepResult> {
  const { ctx, actions, quarantine } = session;
  const { actionId, key, actionType, service, reason } = step;
  const given = {
    ...(actionType === undefined ? {} : { actionType }),
    ...(service === undefined ? {} : { service }),
  };
  await refuseAction(ctx, { node: actions.node, actionId, key, ...given, reason });
  if (await isStill(step.name, key)) await quarantine.setAside(step.name);
  return describeEnd(step, { outcome: 'rejected', reason });
}

function describeEnd(
  { actionId, service }: { actionId: string; service?: string },
  { outcome, reason, exitCode }: Pick<ActionEnd, 'outcome' | 'reason' | 'exitCode'>,
): StepResult {
  const end = {
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
  const line = `${actionId}: ${outcome}${reason === undefined ? '' : `, ${reason}`}`;
  return { line, actionId, ...(service === undefined ? {} : { service }), end };
}
