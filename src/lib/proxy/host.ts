// The address of the instances: looked up here, as HAProxy would look a name up once, at its start, and not start without.
import { isIP } from 'node:net';
import { CommandError, UnavailableError } from '../errors.ts';
import { runProgram } from '../exec/run.ts';

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
  const addresses = await lookUp(host, signal);
  if (current !== undefined && addresses.includes(current)) return current;
  const chosen = addresses.find((address) => isIP(address) === 4) ?? addresses[0];
  if (chosen !== undefined) return chosen;
  throw new UnavailableError(`${failure(host)}: no address of it is known`);
}

/**
 * By a program: a name server that does not answer would hold our own process for as long as the system's resolver likes, which is
 * half a minute and more, also when nobody waits for it any longer.
 */
async function lookUp(host: string, signal: AbortSignal): Promise<string[]> {
  try {
    // 2: there is none.
    const options = { timeoutMs: lookupMs, okStatuses: [0, 2], signal };
    const { stdout } = await runProgram(['getent', '--no-addrconfig', 'ahosts', '--', host], options);
    const addresses = stdout.split('\n').map((line) => line.split(' ', 1).join());
    return [...new Set(addresses)].filter((address) => isIP(address) !== 0);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const cause = error.code === 'timeout' ? `no answer within ${lookupMs / 1000}s` : error.message;
    throw new UnavailableError(`${failure(host)}: ${cause}`, { cause: error });
  }
}

function failure(host: string): string {
  return `cannot look up commands.proxy_backend_host ${JSON.stringify(host)}`;
}
