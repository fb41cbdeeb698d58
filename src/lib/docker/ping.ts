// Whether an engine is there, for those who do not drive it: one request, and nothing of the client is loaded for it.
import { request } from 'node:http';
import { systemErrorCode } from '../errors.ts';

const pingMs = 2_000;

/**
 * `degraded`: it answers late, or with something else than that it is well. `unknown`: we may not ask, as in a unit whose
 * sandbox hides the socket. Never throws.
 */
export function pingEngine(socketPath: string): Promise<'ok' | 'unknown' | 'degraded' | 'error'> {
  return new Promise((resolve) => {
    const options = {
      socketPath,
      // Else a name for TLS is looked for, in five milliseconds.
      servername: '',
      path: '/_ping',
      headers: { host: 'engine' },
      agent: false as const,
      timeout: pingMs,
    };
    const outgoing = request(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'ok' : 'degraded');
    });
    outgoing.once('timeout', () => {
      resolve('degraded');
      outgoing.destroy();
    });
    outgoing.on('error', (error) => {
      const code = systemErrorCode(error);
      resolve(code === 'EACCES' || code === 'EPERM' ? 'unknown' : 'error');
    });
    outgoing.end();
  });
}
