// The open connections of a server: counted as sockets, before any handshake, since one that is not finished is a caller, too.
// Where there are too many, the one that has shown least goes, so that idle ones cannot keep good ones out.
import type { Socket } from 'node:net';

type Connection = { socket: Socket; state: 'fresh' | 'busy' | 'kept' };

export class Connections {
  readonly #open = new Map<string, Connection>();
  readonly #most: number;
  readonly #onIdle: () => void;
  readonly #onBusy: () => void;
  total = 0;

  constructor(about: { most: number; onIdle(): void; onBusy(): void }) {
    this.#most = about.most;
    this.#onIdle = about.onIdle;
    this.#onBusy = about.onBusy;
  }

  /** A new one: the socket below TLS. */
  add(socket: Socket): void {
    this.total += 1;
    if (this.#open.size === 0) this.#onBusy();
    const name = nameOf(socket);
    this.#open.set(name, { socket, state: 'fresh' });
    socket.once('close', () => {
      if (this.#open.get(name)?.socket === socket) this.#open.delete(name);
      if (this.#open.size === 0) this.#onIdle();
    });
    if (this.#open.size > this.#most) this.#findLeast(name).destroy();
  }

  /** A request has begun, or all of it has been answered: `socket` may be the one above TLS. */
  mark(socket: Socket, state: 'busy' | 'kept'): void {
    const connection = this.#open.get(nameOf(socket));
    if (connection !== undefined) connection.state = state;
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  /** Oldest first; the new one itself where all others are at work. */
  #findLeast(newest: string): Socket {
    for (const state of ['fresh', 'kept'] as const) {
      for (const [name, connection] of this.#open) {
        if (connection.state === state && name !== newest) return connection.socket;
      }
    }
    return (this.#open.get(newest) as Connection).socket;
  }
}

/** The same for a socket and the one above it. */
function nameOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}/${remotePort}/${localAddress}/${localPort}`;
}
