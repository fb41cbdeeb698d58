// Bytes put together in memory that is used again: of a log of gigabytes, nothing is left for the garbage collector.

export type ByteStore = {
  readonly size: number;
  add(bytes: Uint8Array): void;
  /** What is in it, and an empty one to go on with. `giveBack` says when the bytes are done with. */
  take(): { bytes: Buffer; giveBack(): void };
};

/** Takes more than `capacity` as well, at the cost of new memory. */
export function createByteStore(capacity: number): ByteStore {
  let spare: Buffer | undefined;
  let current: Buffer | undefined;
  let size = 0;
  const require = (needed: number): Buffer => {
    const wanted = Math.max(capacity, needed);
    if (current === undefined) {
      current = spare !== undefined && spare.length >= wanted ? spare : Buffer.allocUnsafeSlow(wanted);
      spare = undefined;
    } else if (current.length < needed) {
      const larger = Buffer.allocUnsafeSlow(needed * 2);
      current.copy(larger, 0, 0, size);
      current = larger;
    }
    return current;
  };
  return {
    get size() {
      return size;
    },
    add: (bytes) => {
      require(size + bytes.length).set(bytes, size);
      size += bytes.length;
    },
    take: () => {
      const taken = current ?? Buffer.alloc(0);
      const bytes = taken.subarray(0, size);
      current = undefined;
      size = 0;
      return {
        bytes,
        giveBack: () => {
          spare = taken;
        },
      };
    },
  };
}
