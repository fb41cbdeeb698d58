// A container's output as frames of ploy's log: JSON, a line each. What comes out depends on the bytes and their order alone,
// not on how they were cut on their way: after a crash the same stream is made again. Pure but for what it keeps of lines.
import type { LogPart } from '../../docker/types.ts';
import { limits } from '../../ploy/limits.ts';

export type Framer = {
  push(part: LogPart): void;
  /** What has no line feed yet goes out as it is. */
  end(): void;
};

/** So much of a line fits into a frame where nothing in it has to be escaped. */
const maxLineBytes = limits.frameBytes - 64;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Gives each frame with its line feed. */
export function createFramer(emit: (frame: string) => void): Framer {
  const streams = { stdout: createLines('stdout', emit), stderr: createLines('stderr', emit) };
  return {
    push: ({ stream, bytes }) => streams[stream].push(bytes),
    end: () => {
      streams.stdout.end();
      streams.stderr.end();
    },
  };
}

type Lines = { push(bytes: Uint8Array): void; end(): void };

function createLines(stream: LogPart['stream'], emit: (frame: string) => void): Lines {
  let rest: Buffer[] = [];
  let restBytes = 0;
  const takeRest = (last: Buffer): Buffer => {
    if (restBytes === 0) return last;
    const line = Buffer.concat([...rest, last]);
    rest = [];
    restBytes = 0;
    return line;
  };
  const emitLine = (line: Buffer): void => {
    let left = line;
    while (left.length > 0) left = left.subarray(emitPiece(stream, left, emit));
  };
  /** A line that does not end is cut where it would be cut as a whole. */
  const keep = (bytes: Buffer): void => {
    rest.push(Buffer.from(bytes));
    restBytes += bytes.length;
    while (restBytes > maxLineBytes) {
      const line = takeRest(Buffer.alloc(0));
      const left = line.subarray(emitPiece(stream, line, emit));
      rest = [left];
      restBytes = left.length;
    }
  };
  return {
    push: (chunk) => {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      let start = 0;
      for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
        emitLine(takeRest(bytes.subarray(start, end)));
        start = end + 1;
      }
      if (start < bytes.length) keep(bytes.subarray(start));
    },
    end: () => emitLine(takeRest(Buffer.alloc(0))),
  };
}

/** Gives how many bytes of the line have gone into the frame. */
function emitPiece(stream: LogPart['stream'], line: Buffer, emit: (frame: string) => void): number {
  let size = line.length <= maxLineBytes ? line.length : findBoundary(line, maxLineBytes);
  for (;;) {
    const frame = renderFrame(stream, line.subarray(0, size));
    if (frame === undefined) return size;
    // No text of UTF-16 units has more than three bytes for each.
    const bytes = frame.length * 3 < limits.frameBytes ? 0 : Buffer.byteLength(frame);
    if (bytes < limits.frameBytes) {
      emit(frame);
      return size;
    }
    size = findBoundary(line, Math.floor((size * limits.frameBytes * 0.95) / bytes));
  }
}

/** Undefined for an empty line: blanks may be what somebody has lined up. Bytes that are no UTF-8 become replacement characters. */
function renderFrame(stream: LogPart['stream'], line: Buffer): string | undefined {
  let end = line.length;
  while (end > 0 && line[end - 1] === carriageReturn) end -= 1;
  if (end === 0) return undefined;
  const text = line.toString('utf8', 0, end);
  return `{"stream":"${stream}","line":${JSON.stringify(text)}}\n`;
}

/** Not in the middle of a character, where it is one. */
function findBoundary(line: Buffer, at: number): number {
  for (let start = at; start > Math.max(0, at - 4); start -= 1) {
    if (((line[start] ?? 0) & 0xc0) !== 0x80) return start;
  }
  return Math.max(1, at);
}
