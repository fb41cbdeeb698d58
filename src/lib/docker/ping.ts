// Whether an engine is there, for those who do not drive it: one request, and nothing of the client is loaded for it.
import { request } from 'node:http';

const pingMs = 2_000;

/** `degraded`: it answers late, or with something else than that it is well. Never throws. */
export function pingEngine(socketPath: string): Promise<'ok' | 'degraded' | 'error'> {
  return new Promise((resolve) => {
    const options = {
      socketPath,
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
    outgoing.on('error', () => resolve('error'));
    outgoing.end();
  });
}
