// Images over the Engine API: look, pull, list, remove.
import type { Connection } from './connection.ts';
import { inspectImage } from './containers.ts';
import { type Deadlines, idle, total } from './deadline.ts';
import { EngineError, PullError } from './errors.ts';
import { cleanMessage } from './failures.ts';
import { createJsonLines } from './frames.ts';
import { findLogin, type Login, type LoginOptions } from './logins.ts';
import { parseImageList, parsePullLine } from './parse.ts';
import { imagePath, parseImageReference } from './reference.ts';
import type { Call } from './transport.ts';
import type { Engine, PullProgress } from './types.ts';

type ImageCalls = Pick<Engine, 'inspectImage' | 'pullImage' | 'listImages' | 'removeImage'>;

export function imageCalls(
  connection: Connection,
  deadlines: Deadlines,
  logins: LoginOptions | undefined,
): ImageCalls {
  return {
    inspectImage: (reference) => inspectImage(connection, deadlines, reference),
    pullImage: (reference, onProgress, signal) =>
      pullImage(connection, { reference, logins, idleMs: deadlines.idleMs, onProgress, signal }),
    listImages: () =>
      connection.read(
        { action: 'list images', method: 'GET', path: '/images/json', deadline: total(deadlines.readMs) },
        parseImageList,
      ),
    removeImage: async (reference) => {
      await connection.ask({
        action: `remove image "${reference}"`,
        method: 'DELETE',
        path: `/images/${imagePath(reference)}`,
        deadline: total(deadlines.changeMs),
        accept: [404],
      });
    },
  };
}

type Pull = {
  reference: string;
  logins: LoginOptions | undefined;
  idleMs: number;
  onProgress: ((progress: PullProgress) => void) | undefined;
  signal: AbortSignal | undefined;
};

/** What was refused with a token of an earlier run is tried once with a new one. */
async function pullImage(connection: Connection, pull: Pull): Promise<void> {
  const { registry } = parseImageReference(pull.reference);
  const login = pull.logins === undefined ? undefined : await findLogin(pull.logins, registry);
  try {
    await pullWith(connection, pull, login);
  } catch (error) {
    const isRefused = error instanceof PullError && error.code === 'denied';
    if (login?.renew === undefined || !isRefused) throw error;
    await pullWith(connection, pull, await login.renew());
  }
}

async function pullWith(connection: Connection, pull: Pull, login: Login | undefined): Promise<void> {
  const { name, tag, digest } = parseImageReference(pull.reference);
  const secrets = login?.secrets ?? [];
  const call: Call = {
    action: `pull image "${pull.reference}"`,
    method: 'POST',
    path: '/images/create',
    // Without a tag the engine would pull all of them. A digest says more than a tag beside it.
    query: { fromImage: name, tag: digest ?? tag ?? 'latest' },
    headers: login === undefined ? {} : { 'x-registry-auth': login.header },
    deadline: idle(pull.idleMs),
    interruptible: true,
    ...(pull.signal === undefined ? {} : { signal: pull.signal }),
    secrets,
  };
  let failure: string | undefined;
  const lines = createJsonLines((value) => {
    const line = parsePullLine(value);
    if ('error' in line) failure ??= line.error;
    else pull.onProgress?.(line.progress);
  });
  try {
    await connection.stream(call, lines.push);
    lines.end();
  } catch (error) {
    throw toPullError(error, pull, login);
  }
  if (failure === undefined) return;
  throw buildPullError(cleanMessage(failure, secrets), pull, { login, code: 'pull' });
}

/** What the engine says before the stream begins: a name that does not exist, a registry that is down or refuses us. */
function toPullError(error: unknown, pull: Pull, login: Login | undefined): unknown {
  if (!(error instanceof EngineError)) return error;
  const reason = error.message.replace(/^cannot pull image "[^"]*": /, '');
  return buildPullError(reason, pull, { login, code: error.status === 404 ? 'image-not-found' : 'pull' });
}

/** The engine has nothing but words for a refusal; from here on it has a code. */
function buildPullError(
  reason: string,
  pull: Pull,
  { login, code }: { login: Login | undefined; code: 'image-not-found' | 'pull' },
): PullError {
  if (
    pull.logins === undefined ||
    !/unauthorized|denied|credentials|authentication|forbidden/i.test(reason)
  ) {
    return new PullError(pull.reference, reason, code);
  }
  const { registry } = parseImageReference(pull.reference);
  const hint =
    login === undefined
      ? `"${pull.logins.file ?? `${pull.logins.directory}/config.json`}" has no credentials for ${registry}`
      : `the credentials ${login.from} were refused`;
  return new PullError(pull.reference, `${reason}; ${hint}`, 'denied');
}
