// The complete table of what is done about a step. Each answers with what it did; what it throws is its own failure, and the other
// steps go on.
import { isStill, removeEntry } from '../actions/leave.ts';
import { type ActionEnd, closeKey, type ProcessName, writeMarker } from '../actions/markers.ts';
import { endMarker, refuseAction, reportEnd } from '../actions/results.ts';
import { ReeveError } from '../errors.ts';
import { readStartTime, signalGroup } from '../host/processes.ts';
import { performDeploy } from './perform.ts';
import { killGraceMs, type Session } from './session.ts';
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
    case 'report':
      await reportEnd(session.ctx, step.marker);
      return tellEnd(step.marker, step.marker.state);
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
      return end === undefined ? { line: '' } : tellEnd(step, end);
    }
  }
}

type Settle = Extract<Step, { kind: 'settle' }>;

async function settle(session: Session, { key, marker, reason }: Settle): Promise<StepResult> {
  const { ctx, actions } = session;
  // The digest is of no use for people.
  const about = marker ?? { actionId: key.slice(0, -65), key, actionType: 'redeploy', run: ctx.runId };
  const started = marker?.state.kind === 'started' ? marker.state : undefined;
  if (started?.group !== undefined) await endLedGroup(session, started.group);
  const end: ActionEnd = {
    ...{ outcome: 'unknown', endedAt: ctx.clock.now().toISOString(), reason },
    ...(started === undefined ? {} : { startedAt: started.startedAt }),
  };
  const ended = await endMarker(ctx, about, { node: actions.node, end });
  await writeMarker(ctx, ended);
  await reportEnd(ctx, ended);
  return tellEnd(about, end);
}

const lookMs = 50;

/** What the script has left, as long as its leader is there: else the number may be another's. Nothing is deployed beside it. */
async function endLedGroup({ ctx }: Session, { pid, startTime }: ProcessName): Promise<void> {
  const isThere = (): boolean => startTime !== '' && readStartTime(pid) === startTime;
  if (!isThere()) return;
  signalGroup(pid, 'SIGTERM');
  const lastMs = performance.now() + killGraceMs;
  while (isThere() && performance.now() < lastMs) await ctx.clock.sleep(lookMs);
  if (isThere()) signalGroup(pid, 'SIGKILL');
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
  return tellEnd(step, { outcome: 'rejected', reason });
}

function tellEnd(
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
