import { describe, expect, it } from 'vitest';
import { UnexpectedAnswer } from '../../../src/lib/docker/errors.ts';
import { createJsonLines, createLogReader, takeLastLines } from '../../../src/lib/docker/frames.ts';

function frame(stream: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

function readLog(bytes: Uint8Array, chunkSize: number, maxChars = 1_000_000): string {
  const reader = createLogReader(maxChars);
  for (let at = 0; at < bytes.length; at += chunkSize) reader.push(bytes.subarray(at, at + chunkSize));
  return reader.text();
}

describe('a container log', () => {
  it('is whole however frames and chunks cut its characters (R52)', () => {
    const out = Buffer.from('äöü 😀 out\n'.repeat(3));
    const err = Buffer.from('€ 👩‍👩‍👧 err\n'.repeat(3));
    for (let cut = 1; cut < out.length; cut += 1) {
      const bytes = Buffer.concat([
        frame(1, out.subarray(0, cut)),
        frame(1, Buffer.alloc(0)),
        frame(1, out.subarray(cut)),
        frame(2, err),
      ]);
      for (const chunkSize of [1, 3, 8, 9, bytes.length]) {
        expect(readLog(bytes, chunkSize)).toBe(out.toString() + err.toString());
      }
    }
  });

  it('keeps stdout and stderr apart where both are cut in a character (R52)', () => {
    const [a, b] = [Buffer.from('é'), Buffer.from('ü')];
    const bytes = Buffer.concat([
      frame(1, a.subarray(0, 1)),
      frame(2, b.subarray(0, 1)),
      frame(1, a.subarray(1)),
      frame(2, b.subarray(1)),
    ]);
    expect(readLog(bytes, 5)).toBe('éü');
  });

  it('of 40 kB emoji in frames of 16 kB is intact (R52)', () => {
    const line = Buffer.from(`x${'😀'.repeat(10_000)}\n`);
    const frames = [0, 16_384, 32_768].map((at) => frame(1, line.subarray(at, at + 16_384)));
    expect(readLog(Buffer.concat(frames), 1000)).toBe(line.toString());
  });

  it('without frames, as a terminal gives it, is taken as it is', () => {
    expect(readLog(Buffer.from('hello, 😀 terminal\r\n'), 1)).toBe('hello, 😀 terminal\r\n');
    expect(readLog(Buffer.from('hi\r\n'), 10)).toBe('hi\r\n');
    expect(readLog(Buffer.alloc(0), 1)).toBe('');
  });

  it('shows bytes that are no text as replacement characters, and keeps a byte order mark', () => {
    expect(readLog(frame(1, Buffer.from([0xff, 0x61, 0xc3])), 100)).toBe('\ufffda\ufffd');
    expect(readLog(frame(1, Buffer.from('\ufeffa')), 100)).toBe('\ufeffa');
  });

  it('is bounded: the end is kept, and no character is cut', () => {
    const bytes = frame(1, Buffer.from('a😀😀😀'));
    expect(readLog(bytes, 3, 4)).toBe('😀😀');
    expect(readLog(bytes, 3, 3)).toBe('😀');
  });
});

describe('lines of JSON', () => {
  it('are given one by one, whatever the chunks are', () => {
    const text = '{"a":"é"}\r\n\r\n{"b":1}\n{"c":2}';
    for (const size of [1, 2, 7, 100]) {
      const values: unknown[] = [];
      const lines = createJsonLines((value) => values.push(value));
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += size) lines.push(bytes.subarray(at, at + size));
      lines.end();
      expect(values).toEqual([{ a: 'é' }, { b: 1 }, { c: 2 }]);
    }
  });

  it('are refused when they are something else, or have no end', () => {
    const lines = createJsonLines(() => {});
    expect(() => lines.push(Buffer.from('<html>\n'))).toThrow(UnexpectedAnswer);
    const endless = createJsonLines(() => {});
    const flood = (): void => {
      for (let round = 0; round < 3; round += 1) endless.push(Buffer.alloc(600_000, 'x'));
    };
    expect(flood).toThrow(UnexpectedAnswer);
  });
});

describe('the last lines of a text', () => {
  it.each([
    ['a\nb\nc\n', 2, 'b\nc\n'],
    ['a\nb\nc', 2, 'b\nc'],
    ['a\nb\n', 5, 'a\nb\n'],
    ['\n\n\n', 2, '\n\n'],
    ['\na', 1, 'a'],
    ['\na', 2, '\na'],
    ['a', 1, 'a'],
    ['', 3, ''],
    ['a\nb', 0, ''],
  ])('of %j, %d of them, are %j', (text, count, last) => {
    expect(takeLastLines(text, count)).toBe(last);
  });
});
