// Work that goes on while the loop looks elsewhere.
import type { Background } from './session.ts';

export function createBackground(): Background {
  const underWay = new Set<Promise<void>>();
  let settled = 0;
  return {
    add(work) {
      const tracked: Promise<void> = work.finally(() => {
        underWay.delete(tracked);
        settled += 1;
      });
      underWay.add(tracked);
    },
    get size() {
      return underWay.size;
    },
    get settled() {
      return settled;
    },
    next: () => (underWay.size === 0 ? new Promise(() => {}) : Promise.race(underWay)),
    all: async () => {
      await Promise.all(underWay);
    },
  };
}
