// Host ports of web replicas: reserved in ports.json before they are used, and tried on this machine before that.
import { createServer } from 'node:net';
import { allocatePort, portKey } from '../cluster/ports.ts';
import { systemErrorCode } from '../errors.ts';
import type { Session } from './session.ts';

type PortSession = Pick<Session, 'ports'>;
type PortOwner = { project: string; service: string; index: number };

/** More conflicts in a row than this are no accident. */
const maxConflicts = 64;

/** The replica's port, on disk when this resolves. Throws StepError when all are taken. */
export async function reservePort(
  session: PortSession,
  owner: PortOwner,
  bindAddress: string,
): Promise<number> {
  const key = portKey(owner);
  const taken = new Set<number>();
  for (let tries = 0; ; tries += 1) {
    const port = allocatePort({ key, reserved: session.ports.value.ports, taken });
    const isFree = tries >= maxConflicts || !(await isListening(port, bindAddress));
    if (isFree && (await reserve(session, key, port))) return port;
    taken.add(port);
  }
}

/** False where another service, whose turn goes on beside this one, has been quicker. */
async function reserve(session: PortSession, key: string, port: number): Promise<boolean> {
  let reserved = true;
  await session.ports.update((document) => {
    const { ports } = document;
    reserved = !Object.entries(ports).some(([other, its]) => other !== key && its === port);
    return !reserved || ports[key] === port ? document : { ports: { ...ports, [key]: port } };
  });
  return reserved;
}

export async function releasePort(session: PortSession, owner: PortOwner): Promise<void> {
  const key = portKey(owner);
  await session.ports.update((document) => {
    if (document.ports[key] === undefined) return document;
    const { [key]: _, ...others } = document.ports;
    return { ports: others };
  });
}

function isListening(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(systemErrorCode(error) === 'EADDRINUSE'));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(false)));
  });
}
