import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openS3Store } from '../../../src/lib/store/s3.ts';
import { defaultS3Limits } from '../../../src/lib/store/s3-client.ts';
import type { Store } from '../../../src/lib/store/store.ts';
import { cloudRegion, startCloud } from '../../support/cloud.ts';
import { type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts';
import { refusal } from '../../support/s3-answers.ts';
import { failingAfter, streamOf } from '../../support/store-contract.ts';
import { makeTempDir } from '../../support/temp.ts';

const mebibyte = 1024 * 1024;

let proxy: FaultyProxy;
let store: Store;

beforeAll(async () => {
  const cloud = await startCloud({ whenFinished: afterAll });
  Object.assign(process.env, cloud.env);
  proxy = await startFaultyProxy(cloud.endpoint, afterAll);
});

beforeEach(() => {
  proxy.reset();
  store = open();
});

function open(idleMs = defaultS3Limits.idleMs, signal?: AbortSignal): Store {
  const place = { region: cloudRegion, endpoint: proxy.endpoint };
  return openS3Store(
    { bucket: 'state', prefix: 'fleet', place, limits: { ...defaultS3Limits, idleMs } },
    signal,
  );
}

const chunks = (count: number): Buffer[] =>
  Array.from({ length: count }, (_, index) => Buffer.alloc(mebibyte, index));

async function readAll(key: string): Promise<Buffer> {
  return await buffer(Readable.from((await store.getStream(key)) ?? []));
}

/** What of an upload was asked for, in words. */
function steps(): string[] {
  return proxy.seen.flatMap(({ method, path }) => {
    if (method === 'POST') return path.includes('?uploads') ? 'begin' : 'complete';
    if (method === 'PUT') return path.includes('partNumber') ? 'part' : 'whole';
    return method === 'DELETE' ? 'abort' : [];
  });
}

async function listUploads(directory: string): Promise<string[]> {
  const text = await (await fetch(`${proxy.endpoint}/state?uploads&prefix=fleet/${directory}/`)).text();
  return [...text.matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key = '']) => key);
}

async function beginUpload(key: string, startedAt: Date): Promise<void> {
  await fetch(`${proxy.endpoint}/state/${key}?uploads`, {
    method: 'POST',
    headers: { 'x-test-started-at': startedAt.toISOString() },
  });
}

describe('a large object', () => {
  it('goes up in parts of 10 MB, two at a time, and comes down as it was', async () => {
    const sent = chunks(25);
    const entry = await store.putStream('backups/large.gz', streamOf(sent));
    expect(steps()).toEqual(['begin', 'part', 'part', 'part', 'complete']);
    expect(entry).toEqual(await store.head('backups/large.gz'));
    expect(entry.sizeBytes).toBe(25 * mebibyte);
    const received = await readAll('backups/large.gz');
    expect(received.equals(Buffer.concat(sent))).toBe(true);
  });

  it('goes up in one request where it is small', async () => {
    await store.putStream('backups/small.gz', streamOf(chunks(1)));
    expect(steps()).toEqual(['whole']);
  });

  it('leaves no part when its source fails', async () => {
    const fault = new Error('dump failed');
    const failing = store.putStream('backups/fails.gz', failingAfter(25 * mebibyte, fault));
    await expect(failing).rejects.toBe(fault);
    expect(steps().at(-1)).toBe('abort');
    expect(await listUploads('backups')).toEqual([]);
    expect(await store.head('backups/fails.gz')).toBeUndefined();
  });

  it('leaves no part when it is interrupted', async () => {
    const controller = new AbortController();
    async function* source(): AsyncGenerator<Uint8Array> {
      for (const [index, chunk] of chunks(25).entries()) {
        if (index === 15) controller.abort();
        yield chunk;
      }
    }
    await expect(
      open(60_000, controller.signal).putStream('backups/ends.gz', source()),
    ).rejects.toMatchObject({ name: 'UnavailableError', code: 'INTERRUPTED' });
    expect(await listUploads('backups')).toEqual([]);
  });

  const isPart = (path: string): boolean => path.includes('partNumber');
  const isSearch = (path: string): boolean => path.includes('?uploads') || path.includes('&uploads');

  // Parts are held each time: then its own upload has been made, and does not come to its end.
  it.each([
    ['its parts are on their way', [isPart]],
    ['it looks for uploads of earlier runs', [isPart, isSearch]],
  ])('ends at once where it is interrupted while %s', async (_, kinds) => {
    const controller = new AbortController();
    const held = new Set<(path: string) => boolean>();
    proxy.fault = ({ method, path }) => {
      const kind = method === 'POST' || method === 'DELETE' ? undefined : kinds.find((is) => is(path));
      if (kind === undefined) return undefined;
      held.add(kind);
      return { kind: 'silence' };
    };
    const interrupted = open(60_000, controller.signal).putStream('ends/now.gz', streamOf(chunks(25)));
    const end = expect(interrupted).rejects.toMatchObject({ name: 'UnavailableError', code: 'INTERRUPTED' });
    await expect.poll(() => held.size).toBe(kinds.length);
    const startedAt = performance.now();
    controller.abort();
    await end;
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    proxy.reset();
    expect([await listUploads('ends'), await store.list('ends/')]).toEqual([[], []]);
  });

  it('ends at once where it is interrupted while its source gives nothing', async () => {
    const controller = new AbortController();
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* chunks(11);
      controller.abort();
      await new Promise(() => {});
    }
    await expect(open(60_000, controller.signal).putStream('ends/source.gz', source())).rejects.toMatchObject(
      { name: 'UnavailableError', code: 'INTERRUPTED' },
    );
    expect(await listUploads('ends')).toEqual([]);
  });

  it('ends at once where it is interrupted while credentials do not come', async () => {
    await store.put('ends/waits', 'x');
    const directory = makeTempDir();
    const [file, asked] = [join(directory, 'config'), join(directory, 'asked')];
    // Longer than the test may take.
    writeFileSync(file, `[default]\ncredential_process = touch ${asked} && exec sleep 60\n`);
    vi.stubEnv('AWS_CONFIG_FILE', file);
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    const controller = new AbortController();
    const waiting = open(60_000, controller.signal);
    const ends = [
      waiting.putStream('ends/credentials.gz', streamOf(chunks(11))),
      waiting.getStream('ends/waits'),
    ].map((work) => expect(work).rejects.toMatchObject({ name: 'UnavailableError', code: 'INTERRUPTED' }));
    await expect.poll(() => existsSync(asked)).toBe(true);
    controller.abort();
    await Promise.all(ends);
  });

  it('reads no more of its source where a part is refused, and tells that', async () => {
    let given = 0;
    let isEnded = false;
    async function* source(): AsyncGenerator<Uint8Array> {
      try {
        for (; given < 500; given++) yield Buffer.alloc(mebibyte);
      } finally {
        isEnded = true;
      }
    }
    proxy.fault = ({ method, path }) => {
      const isRefused = path.includes('partNumber=1') || method === 'DELETE';
      return isRefused ? refusal(403, method === 'PUT' ? 'AccessDenied' : 'OtherRefusal') : undefined;
    };
    await expect(store.putStream('refused/a.gz', source())).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'denied' },
      message: 'cannot write "refused/a.gz" in store "s3://state/fleet": 403 AccessDenied: It says why.',
    });
    expect(given).toBeLessThan(100);
    await expect.poll(() => isEnded).toBe(true);
  });

  it('tells of the part that is refused, and not of the source that fails for it', async () => {
    let given = 0;
    let endSource = (_error: Error): void => {};
    const unread = new Promise<never>((_, reject) => {
      endSource = reject;
    });
    const iterator: AsyncIterator<Uint8Array> = {
      next: async () => (given++ < 11 ? { value: Buffer.alloc(mebibyte) } : await unread),
      return: async () => {
        endSource(new Error('nobody reads it'));
        return { done: true, value: undefined };
      },
    };
    proxy.fault = ({ method, path }) =>
      method === 'PUT' && path.includes('partNumber') ? refusal(403, 'AccessDenied') : undefined;
    await expect(
      store.putStream('refused/b.gz', { [Symbol.asyncIterator]: () => iterator }),
    ).rejects.toMatchObject({ name: 'UnavailableError', code: 'denied' });
    expect(await listUploads('refused')).not.toContain('fleet/refused/b.gz');
  });

  it('sends a part again that was lost on the way', async () => {
    let lost = false;
    proxy.fault = ({ path }) => {
      if (lost || !path.includes('partNumber=2')) return undefined;
      lost = true;
      return { kind: 'reset' };
    };
    await store.putStream('backups/again.gz', streamOf(chunks(25)));
    expect(lost).toBe(true);
    expect((await store.head('backups/again.gz'))?.sizeBytes).toBe(25 * mebibyte);
  });

  it('ends uploads beside it that were begun over a day ago, and no others', async () => {
    const hours = (count: number): Date => new Date(Date.now() - count * 3_600_000);
    await beginUpload('fleet/backups/killed.gz', hours(25));
    await beginUpload('fleet/backups/under-way.gz', hours(23));
    await beginUpload('fleet/elsewhere/killed.gz', hours(25));
    await store.putStream('backups/new.gz', streamOf(chunks(1)));
    expect(await listUploads('backups')).toEqual(['fleet/backups/under-way.gz']);
    expect(await listUploads('elsewhere')).toEqual(['fleet/elsewhere/killed.gz']);
  });

  it('ends those of all pages, and lets nobody of them keep the others', async () => {
    const longAgo = new Date(Date.now() - 25 * 3_600_000);
    for (let index = 0; index < 12; index++) await beginUpload(`fleet/pages/${index + 10}`, longAgo);
    proxy.fault = ({ method, path }) =>
      method === 'DELETE' && path.includes('pages/11') ? refusal(403, 'AccessDenied') : undefined;
    await store.putStream('pages/new.gz', streamOf(chunks(1)));
    expect(await listUploads('pages')).toEqual(['fleet/pages/11']);
  });

  it('does not look for such uploads for longer than it may', { timeout: 60_000 }, async () => {
    proxy.fault = ({ method, path }) =>
      method === 'GET' && path.includes('uploads') ? { kind: 'silence' } : undefined;
    const startedAt = performance.now();
    expect((await store.putStream('backups/new.gz', streamOf(chunks(1)))).sizeBytes).toBe(mebibyte);
    // Its own deadline is 10 s; the silence of a stream would last 60.
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });

  it('goes up where the service does not let anybody look for such uploads', async () => {
    proxy.fault = ({ method, path }) =>
      method === 'GET' && path.includes('uploads') ? { kind: 'answer', status: 403 } : undefined;
    expect((await store.putStream('backups/new.gz', streamOf(chunks(1)))).sizeBytes).toBe(mebibyte);
  });
});

describe('a slow network', () => {
  it('may take its time as long as something comes', async () => {
    await store.put('slow', 'x'.repeat(500));
    // All of it takes longer than that.
    store = open(5_000);
    proxy.fault = () => ({ kind: 'trickle', bytesPerSecond: 60 });
    const received = await readAll('slow');
    expect(received).toHaveLength(500);
  });

  it('ends a download that nothing comes of any more', async () => {
    await store.put('stalls', 'x'.repeat(500));
    store = open(3_000);
    proxy.fault = () => ({ kind: 'stall' });
    const reading = readAll('stalls');
    await expect(reading).rejects.toMatchObject({
      ...{ name: 'UnavailableError' },
      message: expect.stringContaining('after 3000 ms of inactivity'),
    });
  });

  it('ends a download at once where it is interrupted', async () => {
    await store.put('interrupted', 'x'.repeat(500));
    const controller = new AbortController();
    store = open(60_000, controller.signal);
    proxy.fault = () => ({ kind: 'stall' });
    const reading = expect(readAll('interrupted')).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'INTERRUPTED' },
      message: 'cannot read "interrupted" in store "s3://state/fleet": interrupted',
    });
    await expect.poll(() => proxy.seen.length).toBeGreaterThan(1);
    controller.abort();
    await reading;
  });

  it('tells that a download broke off', async () => {
    await store.put('cut', 'x'.repeat(500));
    proxy.fault = () => ({ kind: 'cutAnswer' });
    const reading = readAll('cut');
    await expect(reading).rejects.toMatchObject({
      ...{ name: 'UnavailableError' },
      message: 'cannot read "cut" in store "s3://state/fleet": ECONNRESET: aborted',
    });
  });
});
