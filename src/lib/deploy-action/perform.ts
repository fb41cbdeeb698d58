// One deploy, once. The marker comes first: should anything end us from then on, it is not begun again. Its end is written down
// before it is told, and told before the file leaves the inbox.
import { isStill, removeEntry } from '../actions/leave.ts';
import { type ActionEnd, type Marker, makeMarker } from '../actions/markers.ts';
import { tellEnd } from '../actions/results.ts';
import { killGraceMs, patienceMs } from '../deploy-runner/times.ts';
import { describeError } from '../errors.ts';
import { renderTail, toActionEnd } from './end.ts';
import { runScript } from './script.ts';
import type { Session } from './session.ts';
import type { Step } from './steps.ts';

const againMs = 2_000;
const lastLines = 20;
const longestLine = 400;

/** Undefined where another process has begun it. Throws where its end could not be written down. */
export async function performDeploy(
  session: Session,
  step: Extract<Step, { kind: 'deploy' }>,
): Promise<ActionEnd | undefined> {
  const { ctx, actions } = session;
  const { actionId, key, service, name } = step;
  const startedAt = ctx.clock.now().toISOString();
  const marker: Marker = {
    ...{ actionId, key, actionType: 'redeploy', service, run: ctx.runId },
    state: { kind: 'started', startedAt },
  };
  await session.tell(`redeploying ${service}`, actions.timeoutMs + killGraceMs + patienceMs);
  if ((await makeMarker(ctx, marker)) === 'known') return undefined;
  ctx.log.info(`redeploying ${service}`, { action: actionId, why: step.reason });
  const scriptEnd = await runScript(session, marker, service);
  const end = toActionEnd(scriptEnd, { startedAt, now: ctx.clock.now(), timeoutMs: actions.timeoutMs });
  const outputTail = renderTail(scriptEnd.output);
  if (end.outcome === 'failed') tellOutput(session, actionId, outputTail);
  const details = { node: actions.node, end, outputTail };
  await patiently(session, actionId, () => tellEnd(ctx, marker, details));
  if (await isStill(name, key)) await removeEntry(name);
  return end;
}

/** For whoever looks into the journal: enough to see why. */
function tellOutput({ ctx }: Session, actionId: string, outputTail: string): void {
  if (outputTail === '') return;
  const lines = outputTail.trimEnd().split('\n').slice(-lastLines);
  for (const line of lines) ctx.log.info(`${actionId} says: ${line.slice(0, longestLine)}`);
}

/** Nobody else knows how it ended: a disk that is full for a while is waited for. */
async function patiently<Value>(
  { ctx }: Session,
  actionId: string,
  write: () => Promise<Value>,
): Promise<Value> {
  const lastMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (ctx.signal.aborted || performance.now() > lastMs) throw error;
      ctx.log.warning(`the end of ${actionId} waits for its record: ${describeError(error)}`);
    }
    await ctx.clock.sleep(againMs, ctx.signal);
  }
}
