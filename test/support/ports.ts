// Ports for servers that are told where to listen.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { endPort, firstPort } from '../../src/lib/cluster/ports.ts';

/**
 * Below what Linux gives to clients and to servers that ask for any port, and none that reeve gives to a replica: nobody takes one
 * between here and its use.
 */
const lowestPort = 10_000;
const firstEphemeralPort = 32_768;

/** Workers that run side by side have every eighth port each, and so have lanes: none is given twice. */
const step = 8;
const { VITEST_POOL_ID: worker, REEVE_TEST_LANE: lane } = process.env;
const offset = (Number(worker ?? 0) + Number(lane ?? 0)) % step;

const given = new Set<number>();

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowestPort / step, firstEphemeralPort / step) * step + offset;
    const isOfReplicas = port >= firstPort && port < endPort;
    if (isOfReplicas || given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

/** On every address: Caddy listens on all of them. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '0.0.0.0', () => resolve(true));
  });
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}
