// The image of a job, fetched every time: its name may mean another one than yesterday.
import { createConnection } from 'node:net';
import { waitUntil } from '../../abort.ts';
import { PullError } from '../../docker/errors.ts';
import { parseImageReference } from '../../docker/reference.ts';
import { describeError, StepError } from '../../errors.ts';
import type { JobSession } from '../session.ts';

const refreshMs = 120_000;

/** Throws what the pull throws; an older copy that is here is no substitute. */
export async function pullJobImage(session: JobSession, image: string, signal: AbortSignal): Promise<void> {
  const { engine, ctx } = session;
  const local = await engine.inspectImage(image);
  // It was made or imported here: no registry has it.
  if (local !== undefined && local.digests.length === 0) return;
  try {
    await engine.pullImage(image, undefined, signal);
  } catch (error) {
    const socket = ctx.overrides.PLOY_DOCKER_AUTH_REFRESH_SOCKET;
    if (socket === undefined || !isRefused(error)) throw error;
    await waitUntil(signal, () => refreshLogin(socket, image, signal));
    await engine.pullImage(image, undefined, signal);
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof PullError && error.code === 'denied';
}

/** Asks whoever keeps the credentials to renew them: one JSON there, one back. */
async function refreshLogin(path: string, image: string, signal: AbortSignal): Promise<void> {
  const { registry } = parseImageReference(image);
  const request = { registry_host: registry, validation_image: image };
  const text = await exchange(path, `${JSON.stringify(request)}\n`, signal).catch((error: unknown) => {
    throw new StepError(`cannot renew the login for ${registry}: ${describeError(error)}`, { cause: error });
  });
  const answer = parseAnswer(text);
  if (answer.ok === true) return;
  const reason =
    typeof answer.error === 'string' && answer.error.trim() !== '' ? answer.error.trim() : 'refused';
  throw new StepError(`cannot renew the login for ${registry}: ${reason.slice(0, 600)}`);
}

function parseAnswer(text: string): { ok?: unknown; error?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { ok?: unknown; error?: unknown };
  } catch {
    return { error: 'the answer is no JSON' };
  }
}

function exchange(path: string, text: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    // A stop is not kept waiting by somebody who thinks.
    const socket = createConnection({ path, signal });
    let answer = '';
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${refreshMs} ms`)), refreshMs);
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(text));
    socket.on('data', (part) => {
      answer += part;
      // One line is the answer, whether or not they hang up.
      if (answer.includes('\n') || answer.length > 65_536) end();
    });
    socket.on('end', end);
    socket.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}
