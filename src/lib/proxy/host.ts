// The address of the instances: looked up here, as HAProxy would look a name up once, at its start, and not start without.
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { UnavailableError } from '../errors.ts';

const lookupMs = 5_000;

/**
 * The address in force is kept while it is still one of the name's, so that answers in turn do not change it each time; of
 * both kinds the older one, on which engines publish ports. Throws UnavailableError.
 */
export async function resolveBackendHost(
  host: string,
  { current, signal }: { current: string | undefined; signal: AbortSignal },
): Promise<string> {
  if (isIP(host) !== 0) return host;
  const addresses = await withDeadline(lookup(host, { all: true }), signal).catch((error: unknown) => {
    const cause = error instanceof Error ? error.message : String(error);
    throw new UnavailableError(
      `cannot look up commands.proxy_backend_host ${JSON.stringify(host)}: ${cause}`,
      {
        cause: error,
      },
    );
  });
  if (addresses.some(({ address }) => address === current)) return current as string;
  const chosen = addresses.find(({ family }) => family === 4) ?? addresses[0];
  if (chosen !== undefined) return chosen.address;
  throw new UnavailableError(
    `cannot look up commands.proxy_backend_host ${JSON.stringify(host)}: it has no address`,
  );
}

/** A name server that does not answer would hold it for as long as the system's resolver likes. */
function withDeadline<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(lookupMs)]);
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Error('no answer'));
    deadline.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => deadline.removeEventListener('abort', stop));
    if (deadline.aborted) stop();
  });
}
