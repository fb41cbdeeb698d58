// Text out of the engine's byte streams: container logs in frames, and lines of JSON. Characters that are cut by a frame or
// a chunk are put together again, for stdout and stderr apart.
import { UnexpectedAnswer } from './errors.ts';

export type LogReader = { push(chunk: Uint8Array): void; text(): string };

const headerBytes = 8;
/** Pull lines have some hundred bytes. */
const maxLineChars = 1024 * 1024;

/**
 * Reads frames of `[stream, 0, 0, 0, length (4 bytes, big-endian)]` and the bytes of one stream. Containers with a
 * terminal send their bytes without frames. Keeps the last `maxChars` characters.
 */
export function createLogReader(maxChars: number): LogReader {
  const streams = createStreamDecoders(createTail(maxChars));
  let pending: Uint8Array = new Uint8Array(0);
  let framed: boolean | undefined;
  let stream = 0;
  let remaining = 0;

  /** Uses up what `bytes` has for the frame under way or the next header; gives the rest. */
  const readPart = (bytes: Uint8Array): Uint8Array => {
    if (remaining === 0) {
      stream = bytes[0] ?? 0;
      remaining = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4);
      return bytes.subarray(headerBytes);
    }
    const part = bytes.subarray(0, remaining);
    remaining -= part.length;
    streams.add(stream, part);
    return bytes.subarray(part.length);
  };

  const readFrames = (bytes: Uint8Array): Uint8Array => {
    let rest = bytes;
    while (rest.length >= (remaining === 0 ? headerBytes : 1)) rest = readPart(rest);
    return rest;
  };

  return {
    push: (chunk) => {
      const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      pending = bytes;
      if (framed === undefined && bytes.length < headerBytes) return;
      framed ??= isHeader(bytes);
      if (!framed) streams.add(0, bytes);
      pending = framed ? readFrames(bytes) : new Uint8Array(0);
    },
    text: () => {
      if (framed === undefined) streams.add(0, pending);
      return streams.text();
    },
  };
}

/** The last `count` lines of a text; one that has no end yet counts. */
export function takeLastLines(text: string, count: number): string {
  let start = text.endsWith('\n') ? text.length - 1 : text.length;
  for (let taken = 0; taken < count && start >= 0; taken += 1) {
    start = start === 0 ? -1 : text.lastIndexOf('\n', start - 1);
  }
  return count <= 0 ? '' : text.slice(start + 1);
}

/** Gives each line of JSON as a value. Throws UnexpectedAnswer for a line that is none. */
export function createJsonLines(onValue: (value: unknown) => void): {
  push(chunk: Uint8Array): void;
  end(): void;
} {
  const decoder = new TextDecoder();
  let rest = '';
  const readLine = (line: string): void => {
    if (line.trim() === '') return;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw new UnexpectedAnswer('a line that is not JSON');
    }
    onValue(value);
  };
  return {
    push: (chunk) => {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > maxLineChars) throw new UnexpectedAnswer('a line without end');
      for (const line of lines) readLine(line);
    },
    end: () => readLine(rest + decoder.decode()),
  };
}

/** Streams are numbered 0 to 3, and three zeroes follow: no text begins so. */
function isHeader(bytes: Uint8Array): boolean {
  return (bytes[0] ?? 4) <= 3 && bytes[1] === 0 && bytes[2] === 0 && bytes[3] === 0;
}

type Tail = { add(text: string): void; text(): string };

/** A decoder for each stream: the rest of a cut character comes with the stream's next frame. */
function createStreamDecoders(tail: Tail): { add(stream: number, bytes: Uint8Array): void; text(): string } {
  const decoders = new Map<number, InstanceType<typeof TextDecoder>>();
  return {
    add: (stream, bytes) => {
      const decoder = decoders.get(stream) ?? new TextDecoder('utf-8', { ignoreBOM: true });
      decoders.set(stream, decoder);
      tail.add(decoder.decode(bytes, { stream: true }));
    },
    text: () => {
      for (const decoder of decoders.values()) tail.add(decoder.decode());
      return tail.text();
    },
  };
}

/** The last `maxChars` characters of all that was added. */
function createTail(maxChars: number): Tail {
  let kept = '';
  const trim = (): void => {
    let start = kept.length - maxChars;
    // Not in the middle of a character beyond the first plane.
    if (/[\uDC00-\uDFFF]/.test(kept[start] ?? '')) start += 1;
    kept = kept.slice(start);
  };
  return {
    add: (text) => {
      kept += text;
      if (kept.length > maxChars * 2) trim();
    },
    text: () => {
      if (kept.length > maxChars) trim();
      return kept;
    },
  };
}
