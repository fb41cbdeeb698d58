// A dump's own restriction is taken out wherever it is cut into chunks, and nothing else is.
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { restrictText } from '../../../src/lib/backup/postgres/restricted.ts';

const head = '--\n-- PostgreSQL database dump\n--\n\n';
const end = '--\n-- PostgreSQL database dump complete\n--\n\n';

async function restrict(dump: string, chunkBytes: number): Promise<string> {
  const bytes = Buffer.from(dump);
  async function* cut(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  }
  return await text(Readable.from(restrictText(cut(), '\\restrict ours\n')));
}

describe.each([1, 7, 1000, 1_000_000])('the text of a dump in chunks of %i bytes', (chunkBytes) => {
  it.each(['SELECT 1;\n', 'é☃\0'.repeat(4000), ''])('loses its own restriction alone (O15)', async (body) => {
    const dump = `${head}\\restrict abc\n${body}\n${end}\\unrestrict abc\n\n`;
    expect(await restrict(dump, chunkBytes)).toBe(`\\restrict ours\n${head}${body}\n${end}\n`);
  });

  it.each([
    `${head}SELECT 1;\n\\restrict abc\n${end}\\unrestrict abc\n\n`,
    `${head}SELECT 1;\n${end}`,
    'COPY t FROM stdin;\n\\unrestrict abc\n\\.\n',
    '',
  ])('is left as it is where it has none (O15)', async (dump) => {
    expect(await restrict(dump, chunkBytes)).toBe(`\\restrict ours\n${dump}`);
  });
});
