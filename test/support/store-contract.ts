// What every store driver must do. A driver's test calls `describeStoreContract` with a way to make an empty store; its
// place is what other processes reach the same one by.
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/lib/errors.ts';
import { openStore, type StorePlace } from '../../src/lib/store/open.ts';
import { PreconditionError, type Store } from '../../src/lib/store/store.ts';
import { startNodeProgram } from './programs.ts';

const key = 'nodes/web-1/desired.json';

export function describeStoreContract(name: string, makePlace: () => Promise<StorePlace> | StorePlace): void {
  const make = async (): Promise<Store> => await openStore(await makePlace());
  describe(`${name} as a store`, () => {
    describeDocuments(make);
    describeConditions(make, makePlace);
    describeListing(make);
    describeStreams(make);
    describeKeys(make);
  });
}

function describeDocuments(make: () => Promise<Store>): void {
  it('has nothing under a key that was never written', async () => {
    const store = await make();
    expect(await store.get(key)).toBeUndefined();
    expect(await store.head(key)).toBeUndefined();
    expect(await store.getStream(key)).toBeUndefined();
    expect(await store.list('')).toEqual([]);
  });

  it('gives back the text with the etag of the put and the time of it', async () => {
    const store = await make();
    const { etag } = await store.put(key, '{"version":3}\n');
    const document = await store.get(key);
    expect(document).toEqual({ text: '{"version":3}\n', etag, updatedAt: document?.updatedAt });
    expect(Math.abs(Date.now() - (document?.updatedAt.getTime() ?? 0))).toBeLessThan(60_000);
    expect(await store.head(key)).toEqual({ key, etag, sizeBytes: 14, updatedAt: document?.updatedAt });
  });

  it.each([
    ['nothing', ''],
    ['Unicode', 'Grüße, 世界, 👩‍👩‍👧, \u0000, \u2028 and a \r\n'],
    ['5 MB', 'näher am Rand\n'.repeat(350_000)],
  ])('keeps %s byte for byte', async (_, text) => {
    const store = await make();
    const { etag } = await store.put(key, text);
    const document = await store.get(key);
    expect(document?.text === text).toBe(true);
    expect([document?.etag, (await store.head(key))?.sizeBytes]).toEqual([etag, Buffer.byteLength(text)]);
  });

  it('keeps bytes that are no text', async () => {
    const store = await make();
    const bytes = Uint8Array.from({ length: 1000 }, (_, index) => index % 256);
    await store.put('backups/a.gz', bytes);
    expect(await readAll(store, 'backups/a.gz')).toEqual(Buffer.from(bytes));
  });

  it('refuses bytes that are no text where a document is asked for', async () => {
    const store = await make();
    await store.put(key, Uint8Array.from([0x7b, 0xe9, 0x7d]));
    await expect(store.get(key)).rejects.toThrow(
      new InputError(`cannot read "${key}": it is not UTF-8 text`),
    );
  });

  it('removes a document, and what is not there', async () => {
    const store = await make();
    await store.put(key, 'text');
    await store.delete(key);
    await store.delete(key);
    expect(await store.get(key)).toBeUndefined();
    expect(await store.list('nodes/')).toEqual([]);
  });
}

function describeConditions(
  make: () => Promise<Store>,
  makePlace: () => Promise<StorePlace> | StorePlace,
): void {
  it('writes with ifAbsent only where nothing is', async () => {
    const store = await make();
    await store.put(key, 'first', { ifAbsent: true });
    await expect(store.put(key, 'second', { ifAbsent: true })).rejects.toEqual(new PreconditionError(key));
    expect((await store.get(key))?.text).toBe('first');
    await store.delete(key);
    await store.put(key, 'third', { ifAbsent: true });
    expect((await store.get(key))?.text).toBe('third');
  });

  it('writes with ifMatch only over the version that was read', async () => {
    const store = await make();
    const { etag: first } = await store.put(key, 'first');
    const { etag: second } = await store.put(key, 'second', { ifMatch: first });
    expect(second).not.toBe(first);
    await expect(store.put(key, 'third', { ifMatch: first })).rejects.toEqual(new PreconditionError(key));
    expect((await store.get(key))?.text).toBe('second');
    await store.delete(key);
    await expect(store.put(key, 'third', { ifMatch: second })).rejects.toEqual(new PreconditionError(key));
    expect(await store.get(key)).toBeUndefined();
  });

  it('writes large objects on condition, too', async () => {
    const store = await make();
    const large = 'x'.repeat(2_000_000);
    const { etag } = await store.put(key, large);
    await store.put(key, `${large}y`, { ifMatch: etag });
    await expect(store.put(key, large, { ifMatch: etag })).rejects.toBeInstanceOf(PreconditionError);
  });

  it('loses none of 20 processes that each count up by a conditional put', async () => {
    const place = await makePlace();
    const writers = Array.from({ length: 20 }, () =>
      startNodeProgram('count-up.ts', [JSON.stringify(place), 'counter.json']),
    );
    const ends = await Promise.all(writers.map((writer) => writer.ended));
    expect(ends.map(({ status, stderr }) => [status, stderr])).toEqual(ends.map(() => [0, '']));
    const store = await openStore(place);
    expect((await store.get('counter.json'))?.text).toBe('20');
  }, 120_000);
}

function describeListing(make: () => Promise<Store>): void {
  const listKeys = async (store: Store, prefix: string): Promise<string[]> =>
    (await store.list(prefix)).map((entry) => entry.key);

  it('lists what begins with the prefix, in byte order', async () => {
    const store = await make();
    const keys = ['a/b', 'a/bc', 'a/b-c', 'a/c/d', 'a/c/d/e', 'ab', 'a/é', 'a/z', 'a/Z', 'a/ｚ', 'a/😀'];
    const stored = keys.filter((one) => one !== 'a/c/d');
    for (const one of stored) await store.put(one, one);
    const sorted = [...stored].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)));
    expect(await listKeys(store, '')).toEqual(sorted);
    expect(await listKeys(store, 'a/')).toEqual(sorted.filter((one) => one !== 'ab'));
    expect(await listKeys(store, 'a/b')).toEqual(['a/b', 'a/b-c', 'a/bc']);
    expect(await listKeys(store, 'a/c/')).toEqual(['a/c/d/e']);
    expect(await listKeys(store, 'a/b/')).toEqual([]);
    expect(await listKeys(store, 'none/')).toEqual([]);
  });

  it('lists each entry as head tells it', async () => {
    const store = await make();
    await store.put('a/b', 'text');
    await store.put('a/c', 'x'.repeat(2_000_000));
    expect(await store.list('a/')).toEqual([await store.head('a/b'), await store.head('a/c')]);
  });
}

function describeStreams(make: () => Promise<Store>): void {
  it('streams an object of unknown length in and out', async () => {
    const store = await make();
    const chunks = Array.from({ length: 40 }, (_, index) => Buffer.alloc(70_000, index));
    const entry = await store.putStream('backups/x.gz', streamOf(chunks));
    expect(entry).toEqual(await store.head('backups/x.gz'));
    expect(entry.sizeBytes).toBe(2_800_000);
    expect((await readAll(store, 'backups/x.gz')).equals(Buffer.concat(chunks))).toBe(true);
  });

  it('streams an object of no bytes', async () => {
    const store = await make();
    expect((await store.putStream('backups/empty', streamOf([]))).sizeBytes).toBe(0);
    expect(await readAll(store, 'backups/empty')).toEqual(Buffer.alloc(0));
  });

  it('leaves nothing of a stream whose source fails, and the old object where there was one', async () => {
    const store = await make();
    const fault = new Error('dump failed');
    await expect(store.putStream('backups/x.gz', failingAfter(3_000_000, fault))).rejects.toBe(fault);
    expect(await store.list('')).toEqual([]);
    await store.put('backups/x.gz', 'old');
    await expect(store.putStream('backups/x.gz', failingAfter(3_000_000, fault))).rejects.toBe(fault);
    expect((await store.get('backups/x.gz'))?.text).toBe('old');
  });
}

function describeKeys(make: () => Promise<Store>): void {
  const refused = [
    '',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/../b',
    'a/./b',
    '.hidden',
    'a/.hidden',
    'a\0b',
    'a\nb',
    'a\ud800',
    'x'.repeat(300),
    'long/'.repeat(300).slice(0, -1),
  ];

  it.each(refused.map((one) => [one]))('refuses the key %j in every operation', async (bad) => {
    const store = await make();
    const operations = [
      store.get(bad),
      store.put(bad, 'x'),
      store.delete(bad),
      store.head(bad),
      store.putStream(bad, streamOf([])),
      store.getStream(bad),
    ];
    const results = await Promise.allSettled(operations);
    expect(
      results.map((result) => result.status === 'rejected' && result.reason instanceof InputError),
    ).toEqual(operations.map(() => true));
    expect(await store.list('')).toEqual([]);
  });

  it.each(['/', '../', 'a//', 'a/../', '.locks/'])('refuses to list the prefix %j', async (prefix) => {
    await expect((await make()).list(prefix)).rejects.toBeInstanceOf(InputError);
  });
}

export async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

export async function* failingAfter(sizeBytes: number, error: Error): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < sizeBytes; sent += 65_536) yield Buffer.alloc(65_536, 1);
  throw error;
}

async function readAll(store: Store, one: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.getStream(one)) ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}
