// The end of what runs in a container after its client has gone: ending `docker exec` ends nothing in there. Processes are
// found by the marker in their environment, sessions by the name they have given the server.
import { setTimeout as sleep } from 'node:timers/promises';
import { isContainerRunning } from '../../docker/exec.ts';
import { CommandError, StepError } from '../../errors.ts';
import { OrphanError, tellError } from '../errors.ts';
import { askServer, notConnected, type Programs, runShort, sessionName } from './programs.ts';
import { terminateSql } from './sql.ts';

/**
 * SIGTERM, and SIGKILL after three seconds. It ends with 1 if something is left, or 127 where the image lacks a program. The
 * marker is an argument, so that neither the shell nor grep has it in its own environment.
 */
const endScript = `
command -v grep >/dev/null && command -v sleep >/dev/null || exit 127
find() { grep -lsF -- "PGAPPNAME=$1" /proc/[0-9]*/environ; }
end() { for file in $(find "$1"); do pid=\${file#/proc/}; kill -s "$2" "\${pid%/environ}" 2>/dev/null; done; }
end "$1" TERM
for try in 1 2 3; do [ -n "$(find "$1")" ] || exit 0; sleep 1; done
end "$1" KILL
for try in 1 2 3; do [ -n "$(find "$1")" ] || exit 0; sleep 1; done
exit 1
`;

const backendTries = 20;
const backendPauseMs = 250;

/**
 * Throws OrphanError where it cannot be told that nothing is left, and StepError (`ended`) where nothing can be, as the container
 * has ended. It is done even by a run that is told to stop.
 */
export async function endMarked(programs: Programs, marker: string): Promise<void> {
  const signal = new AbortController().signal;
  try {
    await runShort(programs, ['sh', '-c', endScript, 'sh', marker], { signal });
    await endBackends(programs, marker, signal);
  } catch (error) {
    if (await hasEnded(programs))
      throw new StepError('its container has ended', { code: 'ended', cause: error });
    throw new OrphanError(tellError(error));
  }
}

const endTries = 4;
const endPauseMs = 1000;

/** The engine calls one that is being removed running for a while. */
async function hasEnded({ socket, container }: Programs): Promise<boolean> {
  for (let tried = 1; ; tried++) {
    if (!(await isContainerRunning(socket, container.id).catch(() => true))) return true;
    if (tried === endTries) return false;
    await sleep(endPauseMs);
  }
}

async function endBackends(programs: Programs, marker: string, signal: AbortSignal): Promise<void> {
  let refusal: unknown;
  for (let tried = 0; tried < backendTries; tried++) {
    try {
      if ((await terminateBackends(programs, marker, signal)) === 0) return;
    } catch (error) {
      // A server that starts anew after a crash is soon there again; one that takes connections refuses this one.
      if (!isRefusal(error) || (tried > 0 && (await takesConnections(programs, signal)))) throw error;
      refusal = error;
    }
    await sleep(backendPauseMs);
  }
  throw refusal ?? new StepError('its sessions in the server do not end');
}

async function terminateBackends(programs: Programs, marker: string, signal: AbortSignal): Promise<number> {
  const [line = ''] = await askServer(programs, terminateSql(marker), { name: sessionName, signal });
  return Number(line.split('|')[1]);
}

function isRefusal(error: unknown): boolean {
  return error instanceof CommandError && error.status === notConnected;
}

async function takesConnections(programs: Programs, signal: AbortSignal): Promise<boolean> {
  const { status } = await runShort(programs, ['pg_isready', '--quiet'], { okStatuses: [0, 1, 2], signal });
  return status === 0;
}
