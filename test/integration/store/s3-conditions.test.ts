// Writes on condition: who was quicker, and whether the service keeps to them at all.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openS3Store } from '../../../src/lib/store/s3.ts';
import { defaultS3Limits } from '../../../src/lib/store/s3-client.ts';
import { PreconditionError, type Store } from '../../../src/lib/store/store.ts';
import { cloudRegion, startCloud } from '../../support/cloud.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts';
import { refusal } from '../../support/s3-answers.ts';
import { makeTempDir } from '../../support/temp.ts';

let proxy: FaultyProxy;
let directory: string;
let store: Store;

beforeAll(async () => {
  const cloud = await startCloud({ whenFinished: afterAll });
  Object.assign(process.env, cloud.env);
  proxy = await startFaultyProxy(cloud.endpoint, afterAll);
});

beforeEach(async () => {
  proxy.reset();
  directory = randomUUID();
  store = open();
  await store.put('a.json', 'first');
  proxy.reset();
});

/** `endpoint: null`: wherever the SDK finds it. */
function open({
  limits = defaultS3Limits,
  endpoint = proxy.endpoint,
}: {
  limits?: typeof defaultS3Limits;
  endpoint?: string | null;
} = {}): Store {
  const place = { region: cloudRegion, ...(endpoint === null ? {} : { endpoint }) };
  return openS3Store({ bucket: 'state', prefix: directory, limits, place });
}

const asked = (): string[] => proxy.seen.map(({ method }) => method);
const subject = (): string => `"a.json" in store "s3://state/${directory}"`;
const etagOf = async (): Promise<string> => (await store.head('a.json'))?.etag ?? '';
const refused = (how: string, header: string) => ({
  ...{ name: 'ConfigError', code: 'conditional-writes', exitCode: 78 },
  message: `cannot write ${subject()}: ${proxy.endpoint} ${how} ${header}, without which two writers overwrite each other`,
});

describe('a write on condition', () => {
  /** The service has shown what it does. */
  beforeEach(async () => {
    const { etag } = await store.put('b.json', 'x', { ifAbsent: true });
    await store.put('b.json', 'y', { ifMatch: etag });
    proxy.reset();
  });

  it('tells that another was quicker, without trying again', async () => {
    const ifMatch = await etagOf();
    await store.put('a.json', 'second', { ifMatch });
    proxy.reset();
    await expect(store.put('a.json', 'third', { ifMatch })).rejects.toEqual(new PreconditionError('a.json'));
    expect(asked()).toEqual(['PUT']);
  });

  it('waits for another that is under way, and is done where that one fails', async () => {
    const ifMatch = await etagOf();
    proxy.reset();
    proxy.fault = (_, count) => (count <= 2 ? refusal(409, 'ConditionalRequestConflict') : undefined);
    const { etag } = await store.put('a.json', 'second', { ifMatch });
    expect(asked()).toEqual(['PUT', 'PUT', 'PUT']);
    expect(await store.get('a.json')).toMatchObject({ text: 'second', etag });
  });

  it.each([
    ['changes', { ifMatch: true }, 'ConditionalRequestConflict'],
    ['makes', { ifAbsent: true }, 'OperationAborted'],
  ])('waits for another that is under way, and is too late where that one %s it', async (_, on, code) => {
    const key = 'ifMatch' in on ? 'a.json' : 'c.json';
    const condition = 'ifMatch' in on ? { ifMatch: await etagOf() } : { ifAbsent: true as const };
    const other = open();
    let tries = 0;
    proxy.fault = async ({ headers }) => {
      if (headers['if-match'] === undefined && headers['if-none-match'] === undefined) return undefined;
      tries += 1;
      if (tries > 1) return undefined;
      await other.put(key, 'second');
      return refusal(409, code);
    };
    await expect(store.put(key, 'third', condition)).rejects.toEqual(new PreconditionError(key));
    expect([tries, (await store.get(key))?.text]).toEqual([2, 'second']);
  });

  it('gives up on others that are under way all the time', async () => {
    const ifMatch = await etagOf();
    proxy.reset();
    proxy.fault = () => refusal(409, 'ConditionalRequestConflict');
    await expect(store.put('a.json', 'x', { ifMatch })).rejects.toEqual(new PreconditionError('a.json'));
    expect(asked()).toHaveLength(5);
  });

  it('knows its own write again when the answer to it was lost', async () => {
    const ifMatch = await etagOf();
    let tries = 0;
    proxy.fault = ({ method }) => {
      if (method !== 'PUT') return undefined;
      tries += 1;
      return tries === 1 ? { kind: 'loseAnswer' } : undefined;
    };
    const { etag } = await store.put('a.json', 'second', { ifMatch });
    expect(await store.get('a.json')).toMatchObject({ text: 'second', etag });
    expect(tries).toBe(2);
  });

  it('knows its own write again where a conflict came after the lost answer', async () => {
    const ifMatch = await etagOf();
    const faults: Fault[] = [{ kind: 'loseAnswer' }, refusal(409, 'ConditionalRequestConflict')];
    proxy.fault = ({ method }) => (method === 'PUT' ? faults.shift() : undefined);
    const { etag } = await store.put('a.json', 'second', { ifMatch });
    expect(await store.get('a.json')).toMatchObject({ text: 'second', etag });
  });

  it('does not take the same text by another for its own', async () => {
    const ifMatch = await etagOf();
    const other = open();
    let tries = 0;
    proxy.fault = async ({ method }) => {
      if (method !== 'PUT') return undefined;
      tries += 1;
      if (tries > 1) return undefined;
      await other.put('a.json', 'second');
      return { kind: 'reset' };
    };
    await expect(store.put('a.json', 'second', { ifMatch })).rejects.toEqual(new PreconditionError('a.json'));
    expect(tries).toBe(3);
  });
});

const conditions = [
  ['If-Match', { ifMatch: 'x' }],
  ['If-None-Match', { ifAbsent: true as const }],
] as const;

const failConditional: FaultyProxy['fault'] = ({ headers }) =>
  headers['if-none-match'] === undefined ? undefined : refusal(501, 'NotImplemented');

describe('a service that is not AWS', () => {
  it.each(conditions)(
    'is refused where it does not know %s, or passes it over',
    async (header, condition) => {
      const isConditional = (headers: object): boolean => header.toLowerCase() in headers;
      proxy.fault = ({ headers }) => (isConditional(headers) ? refusal(501, 'NotImplemented') : undefined);
      for (const key of ['a.json', 'a.json']) {
        await expect(store.put(key, 'x', condition)).rejects.toMatchObject(refused('does not know', header));
      }
      // An honest refusal counts for the life of the process.
      expect(proxy.seen.filter(({ headers }) => isConditional(headers))).toHaveLength(1);
      proxy.reset();
      proxy.droppedHeaders = ['if-match', 'if-none-match'];
      await expect(open().put('a.json', 'x', condition)).rejects.toMatchObject(
        refused('passes over', header),
      );
      proxy.reset();
      expect((await store.list('')).map(({ key }) => key)).toEqual(['a.json']);
      expect((await store.get('a.json'))?.text).toBe('first');
    },
  );

  it.each([
    ['does not know', { fault: failConditional }],
    ['passes over', { droppedHeaders: ['if-none-match'] }],
  ])('leaves nothing of a first document where it %s If-None-Match', async (how, way) => {
    await store.delete('a.json');
    Object.assign(proxy, way);
    await expect(store.put('a.json', 'x', { ifAbsent: true })).rejects.toMatchObject(
      refused(how, 'If-None-Match'),
    );
    proxy.reset();
    expect(await listWhole()).toEqual([]);
  });

  it('writes over nothing with a version where nothing is any more', async () => {
    await store.delete('a.json');
    proxy.droppedHeaders = ['if-match'];
    await expect(store.put('a.json', 'x', { ifMatch: 'x' })).rejects.toEqual(new PreconditionError('a.json'));
    expect(await listWhole()).toEqual([]);
  });

  it('shows once what it does, with the document alone', async () => {
    const writes = ['b.json', 'c.json', 'd.json'].map((key) => store.put(key, 'x', { ifAbsent: true }));
    const [first] = await Promise.all(writes);
    expect(asked().sort()).toEqual(['GET', 'PUT', 'PUT', 'PUT', 'PUT']);
    proxy.reset();
    const { etag } = await store.put('b.json', 'y', { ifMatch: first?.etag ?? '' });
    await store.put('b.json', 'z', { ifMatch: etag });
    expect(asked()).toEqual(['GET', 'PUT', 'PUT', 'PUT']);
    expect(await listWhole()).toEqual(['a.json', 'b.json', 'c.json', 'd.json']);
  });

  it('shows it with a document that may be written and not read', async () => {
    proxy.fault = ({ method }) => (method === 'PUT' ? undefined : refusal(403, 'AccessDenied'));
    await store.put('b.json', 'x', { ifAbsent: true });
    await expect(open().put('b.json', 'y', { ifAbsent: true })).rejects.toBeInstanceOf(PreconditionError);
    proxy.reset();
    expect((await store.get('b.json'))?.text).toBe('x');
  });

  it.each(conditions)('is asked for %s again where the network has failed', async (_, condition) => {
    store = open({ limits: { ...defaultS3Limits, documentMs: 4_000 } });
    proxy.fault = () => ({ kind: 'silence' });
    const waiting = Array.from({ length: 3 }, () => store.put('a.json', 'x', condition));
    const ends = await Promise.allSettled(waiting);
    expect(ends.map((end) => end.status === 'rejected' && end.reason.code)).toEqual(
      Array.from({ length: 3 }, () => 'DEADLINE'),
    );
    proxy.reset();
    await expect(store.put('a.json', 'x', condition)).rejects.toEqual(new PreconditionError('a.json'));
  });

  it.each<[string, () => Record<string, string>]>([
    ['AWS_ENDPOINT_URL_S3', () => ({ AWS_ENDPOINT_URL_S3: proxy.endpoint })],
    ['AWS_ENDPOINT_URL', () => ({ AWS_ENDPOINT_URL: proxy.endpoint })],
    [
      'the shared file',
      () => {
        const file = join(makeTempDir(), 'config');
        writeFileSync(file, `[default]\nendpoint_url = ${proxy.endpoint}\n`);
        return { AWS_CONFIG_FILE: file };
      },
    ],
  ])('has to show it where %s names it, and is named itself', async (_, describeEnv) => {
    vi.stubEnv('AWS_ENDPOINT_URL', undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const [name, value] of Object.entries(describeEnv())) vi.stubEnv(name, value);
    proxy.droppedHeaders = ['if-match', 'if-none-match'];
    const found = open({ endpoint: null });
    const ifMatch = await etagOf();
    await expect(found.put('a.json', 'x', { ifMatch })).rejects.toMatchObject(
      refused('passes over', 'If-Match'),
    );
    const place = { region: cloudRegion };
    const lost = openS3Store({ bucket: 'no-such-bucket', prefix: '', place });
    await expect(lost.list('')).rejects.toThrow(`there is no bucket "no-such-bucket" at ${proxy.endpoint}`);
  });
});

/** Also what our lists leave out. */
async function listWhole(): Promise<string[]> {
  const text = await (await fetch(`${proxy.endpoint}/state?list-type=2&prefix=${directory}`)).text();
  return [...text.matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key = '']) => key.slice(directory.length + 1));
}
