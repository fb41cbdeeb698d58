// The last bytes of a stream, which may talk for an hour: one buffer of at most the limit, however small the chunks are that it
// comes in; and the text that they are.

export type LastBytes = {
  add(chunk: Uint8Array): void;
  /** A copy. */
  read(): KeptBytes;
};

/** `isCut`: the beginning is gone. */
export type KeptBytes = { bytes: Uint8Array; isCut: boolean };

const firstBytes = 4096;

export function keepLastBytes(maxBytes: number): LastBytes {
  let buffer = new Uint8Array(Math.min(firstBytes, maxBytes));
  let start = 0;
  let length = 0;
  let isCut = false;

  const grow = (wanted: number): void => {
    if (wanted <= buffer.length || buffer.length === maxBytes) return;
    const larger = new Uint8Array(Math.min(maxBytes, Math.max(wanted, buffer.length * 2)));
    // Nothing has been dropped before it is as large as it gets, so that it begins at 0.
    larger.set(buffer.subarray(0, length));
    buffer = larger;
  };

  /** Not longer than the buffer. */
  const put = (chunk: Uint8Array): void => {
    const end = (start + length) % Math.max(1, buffer.length);
    const first = chunk.subarray(0, buffer.length - end);
    buffer.set(first, end);
    buffer.set(chunk.subarray(first.length), 0);
    const over = Math.max(0, length + chunk.length - buffer.length);
    start = (start + over) % Math.max(1, buffer.length);
    length = length + chunk.length - over;
    isCut ||= over > 0;
  };

  return {
    add: (chunk) => {
      grow(length + chunk.length);
      if (chunk.length > buffer.length) isCut = true;
      put(chunk.subarray(Math.max(0, chunk.length - buffer.length)));
    },
    read: () => {
      const bytes = new Uint8Array(length);
      const first = buffer.subarray(start, Math.min(buffer.length, start + length));
      bytes.set(first);
      bytes.set(buffer.subarray(0, length - first.length), first.length);
      return { bytes, isCut };
    },
  };
}

/** As UTF-8, from the first character that is whole. */
export function decodeKept({ bytes, isCut }: KeptBytes): string {
  const text = isCut ? bytes.subarray(firstCharacter(bytes)) : bytes;
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8');
}

/** Past the rest of a character whose beginning is gone: at most three continuation bytes. */
function firstCharacter(bytes: Uint8Array): number {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return start;
}
