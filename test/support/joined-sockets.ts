// Two sockets that stand for one: what ends on one side ends on the other.
import type { Socket } from 'node:net';

/** `open` has both for as long as they are. */
export function joinEnds(near: Socket, far: Socket, open: Set<Socket>): void {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    open.add(one);
    one.on('error', () => other.destroy());
    one.once('close', () => {
      open.delete(one);
      other.destroy();
    });
  }
}
