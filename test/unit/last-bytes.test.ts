import { describe, expect, it } from 'vitest';
import { decodeKept, keepLastBytes } from '../../src/lib/last-bytes.ts';

/** The last bytes by the plainest means there are. */
function lastOf(chunks: readonly string[], max: number): { text: string; isCut: boolean } {
  const all = chunks.join('');
  return { text: all.slice(Math.max(0, all.length - max)), isCut: all.length > max };
}

function readKept(chunks: readonly string[], max: number): { text: string; isCut: boolean } {
  const kept = keepLastBytes(max);
  for (const chunk of chunks) kept.add(Buffer.from(chunk));
  const { bytes, isCut } = kept.read();
  return { text: Buffer.from(bytes).toString(), isCut };
}

describe('keepLastBytes', () => {
  it.each([
    ['nothing', []],
    ['less than it holds', ['abc']],
    ['exactly what it holds', ['abcd', 'efgh']],
    ['one byte more', ['abcd', 'efgh', 'i']],
    ['one chunk larger than itself', ['abcdefghijklmnop']],
    ['a large chunk after small ones', ['ab', 'c', 'defghijklmnop', 'q']],
    ['an empty chunk', ['abc', '', 'd']],
  ])('keeps the last bytes: %s (A54)', (_, chunks) => {
    expect(readKept(chunks, 8)).toEqual(lastOf(chunks, 8));
  });

  it('keeps the last bytes of any chunks, before and after it has grown (A54)', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const chunks = Array.from({ length: seed % 17 }, (_, index) =>
        String.fromCharCode(97 + ((seed + index) % 26)).repeat((seed * (index + 3)) % 2311),
      );
      const max = (seed * 97) % 9001;
      expect(readKept(chunks, max)).toEqual(lastOf(chunks, max));
    }
  });

  it('holds nothing where nothing may be kept', () => {
    expect(readKept(['abc'], 0)).toEqual({ text: '', isCut: true });
    expect(readKept([], 0)).toEqual({ text: '', isCut: false });
  });

  it('goes on after it was read', () => {
    const kept = keepLastBytes(4);
    kept.add(Buffer.from('abc'));
    const first = kept.read();
    kept.add(Buffer.from('de'));
    expect(Buffer.from(first.bytes).toString()).toBe('abc');
    expect(Buffer.from(kept.read().bytes).toString()).toBe('bcde');
  });
});

describe('decodeKept', () => {
  const bytes = Buffer.from('ä€😀 end');

  it('begins with the first whole character of what was cut (A54)', () => {
    const texts = Array.from({ length: 10 }, (_, from) =>
      decodeKept({ bytes: bytes.subarray(from), isCut: true }),
    );
    expect(texts).toEqual([
      ...['ä€😀 end', '€😀 end', '€😀 end', '😀 end', '😀 end'],
      ...['😀 end', ' end', ' end', ' end', ' end'],
    ]);
  });

  it('leaves what was not cut as it is, text or not', () => {
    expect(decodeKept({ bytes, isCut: false })).toBe('ä€😀 end');
    expect(decodeKept({ bytes: bytes.subarray(1), isCut: false })).toBe('\ufffd€😀 end');
  });

  it('joins characters that were cut between chunks', () => {
    const kept = keepLastBytes(5);
    for (const byte of Buffer.from('ab😀é')) kept.add(Uint8Array.of(byte));
    expect(decodeKept(kept.read())).toBe('é');
  });
});
