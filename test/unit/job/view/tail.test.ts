import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createTail, type Sink } from '../../../../src/lib/job/view/tail.ts';
import { makeTempDir } from '../../../support/temp.ts';

const { signal } = new AbortController();

function makeSink(isTTY: boolean, error?: Error & { code?: string }) {
  const written: Buffer[] = [];
  const write = (content: string | Buffer, done: (error?: Error) => void): boolean => {
    written.push(Buffer.from(content));
    done(error);
    return true;
  };
  return { sink: { isTTY, write } as unknown as Sink, text: () => Buffer.concat(written).toString() };
}

function makeFile(content: string | Buffer = ''): string {
  const path = join(makeTempDir(), 'stdout.log');
  writeFileSync(path, content);
  return path;
}

describe('a log that is followed', () => {
  it('goes on where it was, also over a file that is cut and written again', async () => {
    const path = makeFile('one\n');
    const { sink, text } = makeSink(false);
    const tail = createTail(path, sink);
    await tail.copy(signal);
    writeFileSync(path, 'o');
    await tail.copy(signal);
    appendFileSync(path, 'ne\ntwo\n');
    await tail.copy(signal);
    expect(text()).toBe('one\ntwo\n');
  });

  it('is nothing where there is no file yet', async () => {
    const { sink, text } = makeSink(false);
    await createTail(join(makeTempDir(), 'stdout.log'), sink).copy(signal);
    expect(text()).toBe('');
  });

  it('goes to a terminal without what that would obey, and with characters that come in two parts', async () => {
    const euro = Buffer.from('€');
    const path = makeFile(Buffer.concat([Buffer.from('a\u001b[2Jb\t'), euro.subarray(0, 1)]));
    const { sink, text } = makeSink(true);
    const tail = createTail(path, sink);
    await tail.copy(signal);
    appendFileSync(path, euro.subarray(1));
    await tail.copy(signal);
    expect(text()).toBe('a\\u001b[2Jb\t€');
  });

  it('is over when its reader has gone, and an error when it cannot be printed', async () => {
    const path = makeFile('one\n');
    const gone = createTail(path, makeSink(false, Object.assign(new Error('x'), { code: 'EPIPE' })).sink);
    await gone.copy(signal);
    expect(gone.isOver).toBe(true);
    const full = createTail(
      path,
      makeSink(false, Object.assign(new Error('no space'), { code: 'ENOSPC' })).sink,
    );
    await expect(full.copy(signal)).rejects.toThrow('cannot print the log: no space');
  });
});
