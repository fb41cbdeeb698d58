import { describe, expect, it } from 'vitest';
import { createRing } from '../../../src/lib/runner/ring.ts';

/** The last bytes by the plainest means there are. */
function lastOf(chunks: readonly string[], max: number): { text: string; isCut: boolean } {
  const all = chunks.join('');
  return { text: all.slice(Math.max(0, all.length - max)), isCut: all.length > max };
}

function readRing(chunks: readonly string[], max: number): { text: string; isCut: boolean } {
  const ring = createRing(max);
  for (const chunk of chunks) ring.add(Buffer.from(chunk));
  const { bytes, isCut } = ring.read();
  return { text: Buffer.from(bytes).toString(), isCut };
}

describe('createRing', () => {
  it.each([
    ['nothing', []],
    ['less than it holds', ['abc']],
    ['exactly what it holds', ['abcd', 'efgh']],
    ['one byte more', ['abcd', 'efgh', 'i']],
    ['one chunk larger than itself', ['abcdefghijklmnop']],
    ['a large chunk after small ones', ['ab', 'c', 'defghijklmnop', 'q']],
    ['an empty chunk', ['abc', '', 'd']],
  ])('keeps the last bytes: %s (A54)', (_, chunks) => {
    expect(readRing(chunks, 8)).toEqual(lastOf(chunks, 8));
  });

  it('keeps the last bytes of any chunks, before and after it has grown (A54)', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const chunks = Array.from({ length: seed % 17 }, (_, index) =>
        String.fromCharCode(97 + ((seed + index) % 26)).repeat((seed * (index + 3)) % 2311),
      );
      const max = (seed * 97) % 9001;
      expect(readRing(chunks, max)).toEqual(lastOf(chunks, max));
    }
  });

  it('holds nothing where nothing may be kept', () => {
    expect(readRing(['abc'], 0)).toEqual({ text: '', isCut: true });
    expect(readRing([], 0)).toEqual({ text: '', isCut: false });
  });

  it('goes on after it was read', () => {
    const ring = createRing(4);
    ring.add(Buffer.from('abc'));
    const first = ring.read();
    ring.add(Buffer.from('de'));
    expect(Buffer.from(first.bytes).toString()).toBe('abc');
    expect(Buffer.from(ring.read().bytes).toString()).toBe('bcde');
  });
});
