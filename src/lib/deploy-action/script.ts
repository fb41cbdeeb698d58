// Runs the deploy script for one service: the checkout's own where the configuration names one, else the one that is shipped.
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Marker, writeMarker } from '../actions/markers.ts';
import type { ActionsConfig } from '../config/config.ts';
import { childEnvironment } from '../config/environment.ts';
import { buildDeployArgs, buildDeployEnv, buildDeployMark } from '../deploy-runner/script.ts';
import { killGraceMs } from '../deploy-runner/times.ts';
import { ConfigError, describeError } from '../errors.ts';
import { requireBootId } from '../host/boot.ts';
import { endMarked, nameProcess } from '../host/processes.ts';
import { type CommandEnd, runCommand } from '../runner/run.ts';
import { findUser } from '../runner/user.ts';
import type { Session } from './session.ts';

const maxOutputBytes = 64 * 1024;

/** Never throws: what cannot be started has ended, too. */
export async function runScript(session: Session, marker: Marker, service: string): Promise<CommandEnd> {
  const { ctx, actions } = session;
  const { checkout, user, timeoutMs } = actions;
  const scratchDir = join(ctx.paths.runDir, 'deploy-action');
  let named: Promise<void> = Promise.resolve();
  try {
    const { ids, env } = await findUser(ctx, user);
    await mkdir(scratchDir, { recursive: true, mode: 0o700 });
    const spec = {
      argv: [findScript(actions), ...buildDeployArgs(service)] as const,
      dir: checkout,
      env: { ...childEnvironment(), ...env, ...buildDeployEnv(actions), ...buildDeployMark(marker.key) },
      ...(ids === undefined ? {} : { user: ids }),
    };
    const end = await runCommand(spec, {
      ...{ deadlineMs: timeoutMs, killGraceMs, maxOutputBytes, scratchDir, signal: ctx.signal },
      onStarted: (pid) => {
        named = nameGroup(session, marker, pid);
      },
    });
    if (end.kind === 'deadline' || end.kind === 'cancelled') await endRest(session, marker);
    return end;
  } catch (error) {
    const output = { bytes: new Uint8Array(), isCut: false };
    if (ctx.signal.aborted) return { kind: 'cancelled', output };
    return { kind: 'not-started', message: describeError(error), output };
  } finally {
    await named;
  }
}

/** What has left the group is ended as well: it has had its grace, and the service may be deployed again right away. */
async function endRest({ ctx }: Session, marker: Marker): Promise<void> {
  const [[name, value] = []] = Object.entries(buildDeployMark(marker.key));
  const isOver = await endMarked(`${name}=${value}`, { graceMs: 0, clock: ctx.clock });
  if (!isOver) ctx.log.warning(`some of what ${marker.actionId} has started stays`);
}

function findScript({ script, checkout }: Pick<ActionsConfig, 'script' | 'checkout'>): string {
  return script === undefined ? findShipped() : join(checkout, script);
}

/** Beside the program, which is bundled when installed and sources when it is developed. */
function findShipped(): string {
  for (let place = import.meta.dirname; ; place = dirname(place)) {
    const path = join(place, 'scripts/deploy-service.sh');
    if (existsSync(path)) return path;
    if (place === dirname(place)) throw new ConfigError('cannot find the deploy script that reeve ships');
  }
}

/** Should we be killed, whoever settles the action finds what we have left. Without it the script runs as well. */
async function nameGroup({ ctx }: Session, marker: Marker, pid: number): Promise<void> {
  if (marker.state.kind !== 'started') return;
  const { startedAt } = marker.state;
  try {
    const group = nameProcess(pid, await requireBootId(ctx.paths));
    await writeMarker(ctx, { ...marker, state: { kind: 'started', startedAt, group } });
  } catch (error) {
    ctx.log.warning(`what ${marker.actionId} runs has no name on disk: ${describeError(error)}`);
  }
}
