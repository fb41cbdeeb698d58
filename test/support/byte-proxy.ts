// A way to a server that ends after a given number of bytes, whatever is said over it: for what is killed in the middle of a body.
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from './after-test.ts';
import { joinEnds } from './joined-sockets.ts';

export type ByteProxy = {
  readonly port: number;
  /** Lets so many bytes through to the server, counted from now over all connections, and then nothing more; `action` is called. */
  cutAfter(bytes: number, action: () => void): void;
  /** Ends every connection. */
  cut(): void;
  /** All goes through again. */
  heal(): void;
};

export async function startByteProxy(target: number): Promise<ByteProxy> {
  let left = Number.POSITIVE_INFINITY;
  let act = (): void => {};
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target });
    joinEnds(near, far, open);
    far.pipe(near);
    near.on('data', (bytes: Buffer) => {
      const through = bytes.subarray(0, Math.min(bytes.length, left));
      left -= through.length;
      if (through.length > 0 && !far.write(through)) {
        near.pause();
        far.once('drain', () => near.resume());
      }
      if (left > 0) return;
      near.pause();
      act();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return {
    port: (server.address() as { port: number }).port,
    cutAfter: (bytes, action) => {
      left = bytes;
      act = action;
    },
    cut: () => {
      for (const socket of open) socket.destroy();
    },
    heal: () => {
      left = Number.POSITIVE_INFINITY;
      act = () => {};
    },
  };
}
