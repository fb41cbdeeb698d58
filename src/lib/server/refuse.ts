// For a server that cannot begin: whoever is waiting on the socket is answered, or systemd would start us for them again and
// again. It ends soon, so that the next caller finds what has been mended meanwhile.
import { createServer, type Socket } from 'node:net';
import type { BaseContext } from '../context.ts';
import { type ListenTarget, listenOn } from './listen.ts';

/** Without a caller for so long, or after so long in any case. */
const quietMs = 2_000;
const longestMs = 30_000;
const tlsHandshake = 0x16;

const words = 'this node cannot serve now: its journal tells why\n';
const refusal = [
  'HTTP/1.1 503 Service Unavailable',
  'content-type: text/plain; charset=utf-8',
  `content-length: ${words.length}`,
  'connection: close',
  '',
  words,
].join('\r\n');

/** Nothing but the refusal leaves: who calls is not known here. */
export async function refuseCallers(ctx: Pick<BaseContext, 'signal'>, target: ListenTarget): Promise<void> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    quiet.refresh();
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => {});
    socket.setTimeout(quietMs, () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      // Without a certificate there is nothing to say in TLS.
      if (first[0] === tlsHandshake) socket.destroy();
      else socket.end(refusal, () => socket.destroySoon());
    });
  });
  const stop = (): void => {
    clearTimeout(quiet);
    clearTimeout(longest);
    server.close();
    for (const socket of open) socket.destroySoon();
  };
  const quiet = setTimeout(stop, quietMs);
  const longest = setTimeout(stop, longestMs);
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  await listenOn(server, target);
  ctx.signal.addEventListener('abort', stop, { once: true });
  await closed;
  ctx.signal.removeEventListener('abort', stop);
}
