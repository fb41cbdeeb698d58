// Host ports of web replicas: reserved in ports.json before they are used, and tried on this machine before that.
import { createServer } from 'node:net';
import { allocatePort, portKey } from '../cluster/ports.ts';
import { systemErrorCode } from '../errors.ts';
import type { Session } from './session.ts';

type PortOwner = { project: string; service: string; index: number };

/** More conflicts in a row than this are no accident. */
const maxConflicts = 64;

/** The replica's port, on disk when this resolves. Throws StepError when all are taken. */
export async function reservePort(session: Session, owner: PortOwner, bindAddress: string): Promise<number> {
  const key = portKey(owner);
  const taken = new Set<number>();
  for (let tries = 0; ; tries += 1) {
    const port = allocatePort({ key, reserved: session.ports.value.ports, taken });
    if (tries >= maxConflicts || !(await isListening(port, bindAddress))) {
      await session.ports.update(({ ports }) =>
        ports[key] === port ? session.ports.value : { ports: { ...ports, [key]: port } },
      );
      return port;
    }
    taken.add(port);
  }
}

export async function releasePort(session: Session, owner: PortOwner): Promise<void> {
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
