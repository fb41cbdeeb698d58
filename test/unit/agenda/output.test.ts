import { describe, expect, it } from 'vitest';
import { renderOutput } from '../../../src/lib/agenda/output.ts';

const mark = '...[truncated]...\n';
const render = (text: string | Buffer, isCut: boolean, max: number): string =>
  renderOutput({ bytes: Buffer.from(text as string), isCut }, max);

describe('renderOutput', () => {
  it('gives back what is not too long as it is (A54)', () => {
    expect(render('', false, 0)).toBe('');
    expect(render('abc\n', false, 4)).toBe('abc\n');
    expect(render('ä€😀\0\u001b[1m', false, 100)).toBe('ä€😀\0\u001b[1m');
  });

  it('leads what lost its beginning with the mark, which counts (A54)', () => {
    expect(render('0123456789'.repeat(3), true, 30)).toBe(`${mark}890123456789`);
    expect(Buffer.byteLength(render('0123456789'.repeat(3), true, 30))).toBe(30);
  });

  it.each([0, 1, 2, 3, 17, 18, 19, 20, 21, 22, 23, 64])(
    'is never longer than %i bytes, and whole characters',
    (max) => {
      const bytes = Buffer.from('ä€😀'.repeat(20));
      for (let start = 0; start < 9; start += 1) {
        const text = render(bytes.subarray(bytes.length - max + start), true, max);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(max);
        expect(text).not.toContain('\ufffd');
      }
    },
  );

  it('has no mark where there is no room for more than that', () => {
    expect(render('0123456789', true, 5)).toBe('56789');
    expect(render('0123456789'.repeat(2), true, 18)).toBe('234567890123456789');
    expect(render('0123456789'.repeat(2), true, 19)).toBe(`${mark}9`);
  });

  it('cuts what has become longer because it is no text', () => {
    const text = render(Buffer.alloc(30, 0xff), false, 30);
    expect(text).toBe(`${mark}${'\ufffd'.repeat(4)}`);
  });
});
