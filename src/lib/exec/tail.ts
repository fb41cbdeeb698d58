// The last bytes of a stream, in bounded memory: a program that talks for an hour must not fill ours.

export type Tail = {
  add(chunk: Uint8Array): void;
  /** UTF-8, beginning with a whole character. */
  text(): string;
  /** True if something was dropped. */
  readonly cut: boolean;
};

export function createTail(maxBytes: number): Tail {
  let chunks: Uint8Array[] = [];
  let heldBytes = 0;
  let cut = false;

  const shrink = (): void => {
    const joined = Buffer.concat(chunks);
    const kept = joined.subarray(Math.max(0, joined.length - maxBytes));
    cut ||= kept.length < joined.length;
    chunks = [kept];
    heldBytes = kept.length;
  };

  return {
    add: (chunk) => {
      chunks.push(chunk);
      heldBytes += chunk.length;
      // Twice the limit before joining, so that small chunks do not cost a copy each.
      if (heldBytes > maxBytes * 2) shrink();
    },
    text: () => {
      shrink();
      const [bytes = new Uint8Array()] = chunks;
      return Buffer.from(cut ? bytes.subarray(firstCharacter(bytes)) : bytes).toString('utf8');
    },
    get cut() {
      return cut || heldBytes > maxBytes;
    },
  };
}

/** Past the rest of a character whose beginning was dropped: at most three continuation bytes. */
function firstCharacter(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return start;
}
