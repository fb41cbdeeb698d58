import { describe, expect, it } from 'vitest';
import type { LogPart } from '../../../src/lib/docker/types.ts';
import { createFramer } from '../../../src/lib/job/logs/frames.ts';
import { createRandom } from '../../support/random.ts';

type Part = [LogPart['stream'], string | Buffer];

function frame(parts: readonly Part[]): string[] {
  const frames: string[] = [];
  const framer = createFramer((one) => frames.push(one));
  for (const [stream, bytes] of parts) framer.push({ stream, bytes: Buffer.from(bytes as string) });
  framer.end();
  return frames;
}

const lines = (parts: readonly Part[]): string[] =>
  frame(parts).map((one) => {
    expect(one.endsWith('\n')).toBe(true);
    const { stream, line } = JSON.parse(one);
    return `${stream}: ${line}`;
  });

describe('P62: frames of a log', () => {
  it.each<[string, Part[], string[]]>([
    [
      'one a line, in their order',
      [
        ['stdout', 'a\nb\n'],
        ['stderr', 'c\n'],
      ],
      ['stdout: a', 'stdout: b', 'stderr: c'],
    ],
    ['without empty lines', [['stdout', '\n\r\na\n\n']], ['stdout: a']],
    [
      'with lines of blanks',
      [['stdout', ' \n\t\r\na\n  ']],
      ['stdout:  ', 'stdout: \t', 'stdout: a', 'stdout:   '],
    ],
    ['without carriage returns at the end', [['stdout', 'a\r\nb\rc\r\r\n']], ['stdout: a', 'stdout: b\rc']],
    [
      'of lines in parts, each when it ends',
      [
        ['stdout', 'a'],
        ['stderr', 'x\n'],
        ['stdout', 'b\n'],
      ],
      ['stderr: x', 'stdout: ab'],
    ],
    [
      'of what has no line feed, at the end',
      [
        ['stderr', 'x'],
        ['stdout', 'a'],
      ],
      ['stdout: a', 'stderr: x'],
    ],
    [
      'of characters that are cut',
      [
        ['stdout', Buffer.from([0xc3])],
        ['stderr', '\n'],
        ['stdout', Buffer.from([0xa4, 0x0a])],
      ],
      ['stdout: ä'],
    ],
    ['of bytes that are no text', [['stdout', Buffer.from([0x61, 0xff, 0x0a])]], ['stdout: a\ufffd']],
  ])('%s', (_, parts, expected) => {
    expect(lines(parts)).toEqual(expected);
  });

  it.each([
    ['letters', 'x'.repeat(1_000_000)],
    ['what is escaped', '\u0001'.repeat(300_000)],
    ['long characters', '😀ä'.repeat(200_000)],
    ['carriage returns', `${'\r'.repeat(600_000)}x`],
    ['broken bytes', Buffer.alloc(700_000, 0x80)],
  ])('are at most 256 KiB, of a line of %s as well', (_, line) => {
    const frames = frame([
      ['stdout', line],
      ['stdout', '\n'],
    ]);
    expect(Math.max(...frames.map((one) => Buffer.byteLength(one)))).toBeLessThanOrEqual(256 * 1024);
    if (typeof line !== 'string' || line.startsWith('\r')) return;
    expect(frames.map((one) => JSON.parse(one).line).join('')).toBe(line);
  });

  it('P63: are the same however the bytes came', () => {
    const random = createRandom(7);
    const pieces = ['\n', '\r', 'ab', 'ä', '😀', ' ', '\u0001', 'x'.repeat(70_000), 'y'.repeat(300_000)];
    const parts = Array.from({ length: 300 }, (): Part => {
      const text = pieces[random.below(pieces.length)] ?? '';
      return [random.below(3) === 0 ? 'stderr' : 'stdout', text];
    });
    const cut = parts.flatMap(([stream, text]): Part[] => {
      const bytes = Buffer.from(text as string);
      const at = random.below(bytes.length + 1);
      return [
        [stream, bytes.subarray(0, at)],
        [stream, bytes.subarray(at)],
      ];
    });
    expect(frame(cut).join('') === frame(parts).join('')).toBe(true);
  });
});
