import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { captureDump, compress } from '../../../src/lib/backup/dump/capture.ts';
import { makeTempDir } from '../../support/temp.ts';

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const tail = '--\n-- PostgreSQL database dump complete\n--\n';
const plain = `-- dump\n${'INSERT INTO t VALUES (1);\n'.repeat(20_000)}${tail}`;

describe('a captured dump', () => {
  it.each([
    ['an older server', plain],
    [
      'a patched server, whose lines behind the end are no fault',
      `\\restrict abc\n${plain}\n\\unrestrict abc\n`,
    ],
  ])('of %s is whole, with its size and hash (O12)', async (_, text) => {
    const bytes = gzipSync(text);
    const path = join(makeTempDir(), 'dump');
    expect(await captureDump(path, pieces(bytes, 1000))).toEqual({
      path,
      sizeBytes: bytes.length,
      rawBytes: text.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    });
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it.each([0.001, 0.1, 0.6, 0.99, 0.9999])('that was cut at %f of it is none (O2, O12)', async (part) => {
    const bytes = gzipSync(plain);
    const cut = bytes.subarray(0, Math.max(1, Math.floor(bytes.length * part)));
    await expect(captureDump(join(makeTempDir(), 'dump'), pieces(cut, 1000))).rejects.toThrow(
      'the dump is cut',
    );
  });

  it.each([
    ['without a byte', Buffer.alloc(0), 'the dump is empty: it has no bytes'],
    ['of nothing', gzipSync(''), 'the dump is empty: nothing is in it'],
    [
      'with zeros behind it',
      Buffer.concat([gzipSync('x'), Buffer.alloc(100)]),
      'the dump has bytes behind its end',
    ],
    ['that is no gzip', Buffer.from('pg_dump: error'), 'the dump is cut or damaged: incorrect header check'],
  ])('%s is none (O2)', async (_, bytes, told) => {
    await expect(captureDump(join(makeTempDir(), 'dump'), pieces(bytes, 1000))).rejects.toThrow(told);
  });

  it('whose program fails after all of it is none (O1)', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield gzipSync(plain);
      throw new Error('exit status 1');
    }
    await expect(captureDump(join(makeTempDir(), 'dump'), failing())).rejects.toThrow('exit status 1');
  });
});

describe('text that is compressed', () => {
  it('comes whole', async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of compress(pieces(Buffer.from(plain), 100_000))) chunks.push(chunk);
    expect(gunzipSync(Buffer.concat(chunks)).toString()).toBe(plain);
  });

  it('throws what its source throws', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(plain);
      throw new Error('exit status 1');
    }
    await expect(captureDump(join(makeTempDir(), 'dump'), compress(failing()))).rejects.toThrow(
      'exit status 1',
    );
  });

  it('does not hold up a reader that stops before its end, as on a full disk (O16)', async () => {
    let [taken, isEnded] = [0, false];
    async function* source(): AsyncGenerator<Uint8Array> {
      try {
        for await (const piece of pieces(randomBytes(4_000_000), 64 * 1024)) {
          taken += 1;
          yield piece;
        }
      } finally {
        isEnded = true;
      }
    }
    for await (const _ of compress(source())) break;
    await expect.poll(() => isEnded, { timeout: 10_000 }).toBe(true);
    // Not by being read to its end.
    expect(taken).toBeLessThan(60);
  });
});
