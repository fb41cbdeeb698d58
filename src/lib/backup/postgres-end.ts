// The end of what runs in a container after its client has gone: ending `docker exec` ends nothing in there. Processes are
// found by the marker in their environment, sessions by the name they have given the server.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../errors.ts';
import { OrphanError } from './errors.ts';
import { askServer, type Programs, runShort, sessionName } from './postgres-programs.ts';
import { terminateSql } from './postgres-sql.ts';

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

/** Throws OrphanError where it cannot be told that nothing is left. It is done even by a run that is told to stop. */
export async function endMarked(programs: Programs, marker: string): Promise<void> {
  const signal = new AbortController().signal;
  try {
    await runShort(programs, ['sh', '-c', endScript, 'sh', marker], { signal });
  } catch (error) {
    throw new OrphanError(describeError(error));
  }
  await endBackends(programs, marker, signal);
}

async function endBackends(programs: Programs, marker: string, signal: AbortSignal): Promise<void> {
  for (let tried = 0; tried < backendTries; tried++) {
    const left = await terminateBackends(programs, marker, signal);
    if (left === 0) return;
    await sleep(backendPauseMs);
  }
  throw new OrphanError('its sessions in the server do not end');
}

async function terminateBackends(programs: Programs, marker: string, signal: AbortSignal): Promise<number> {
  try {
    const [line = ''] = await askServer(programs, terminateSql(marker), { name: sessionName, signal });
    return Number(line.split('|')[1]);
  } catch (error) {
    throw new OrphanError(describeError(error));
  }
}
