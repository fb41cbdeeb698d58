// Images over the Engine API: look, pull, list, remove.
import type { Connection } from './connection.ts';
import { inspectImage } from './containers.ts';
import { readRegistryCredentials } from './credentials.ts';
import { type Deadlines, idle, total } from './deadline.ts';
import { EngineError, PullError } from './errors.ts';
import { cleanMessage } from './failures.ts';
import { createJsonLines } from './frames.ts';
import { parseImageList, parsePullLine } from './parse.ts';
import { imagePath, parseImageReference } from './reference.ts';
import type { Call } from './transport.ts';
import type { Engine, PullProgress } from './types.ts';

type ImageCalls = Pick<Engine, 'inspectImage' | 'pullImage' | 'listImages' | 'removeImage'>;

export function imageCalls(
  connection: Connection,
  deadlines: Deadlines,
  registryAuthDir: string | undefined,
): ImageCalls {
  return {
    inspectImage: (reference) => inspectImage(connection, deadlines, reference),
    pullImage: (reference, onProgress) =>
      pullImage(connection, { reference, registryAuthDir, idleMs: deadlines.idleMs, onProgress }),
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
  registryAuthDir: string | undefined;
  idleMs: number;
  onProgress: ((progress: PullProgress) => void) | undefined;
};

async function pullImage(connection: Connection, pull: Pull): Promise<void> {
  const { registry, name, tag, digest } = parseImageReference(pull.reference);
  const { registryAuthDir } = pull;
  const credentials =
    registryAuthDir === undefined ? undefined : readRegistryCredentials(registryAuthDir, registry);
  const secrets = credentials?.secrets ?? [];
  const call: Call = {
    action: `pull image "${pull.reference}"`,
    method: 'POST',
    path: '/images/create',
    // Without a tag the engine would pull all of them. A digest says more than a tag beside it.
    query: { fromImage: name, tag: digest ?? tag ?? 'latest' },
    headers: credentials === undefined ? {} : { 'x-registry-auth': credentials.header },
    deadline: idle(pull.idleMs),
    interruptible: true,
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
    throw toPullError(error, pull, credentials !== undefined);
  }
  if (failure === undefined) return;
  const reason = cleanMessage(failure, secrets);
  throw new PullError(
    pull.reference,
    reason + credentialsHint(reason, pull, credentials !== undefined),
    'pull',
  );
}

/** What the engine says before the stream begins: a name that does not exist, a registry that is down or refuses us. */
function toPullError(error: unknown, pull: Pull, hadCredentials: boolean): unknown {
  if (!(error instanceof EngineError)) return error;
  const reason = error.message.replace(/^cannot pull image "[^"]*": /, '');
  const hint = credentialsHint(reason, pull, hadCredentials);
  return new PullError(pull.reference, reason + hint, error.status === 404 ? 'image-not-found' : 'pull');
}

/** The words decide only whether a person is told more. */
function credentialsHint(reason: string, pull: Pull, hadCredentials: boolean): string {
  if (pull.registryAuthDir === undefined || !/unauthorized|denied|credentials|authentication/i.test(reason))
    return '';
  const file = `${pull.registryAuthDir}/config.json`;
  return hadCredentials
    ? `; the credentials in "${file}" were refused`
    : `; "${file}" has no credentials for ${parseImageReference(pull.reference).registry}`;
}
