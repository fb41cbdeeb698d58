import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openS3Store } from '../../../src/lib/store/s3.ts';
import { defaultS3Limits } from '../../../src/lib/store/s3-client.ts';
import type { Store } from '../../../src/lib/store/store.ts';
import { cloudRegion, startCloud } from '../../support/cloud.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts';
import { foreignPage, refusal } from '../../support/s3-answers.ts';

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

function open(bucket = 'state', limits = defaultS3Limits): Store {
  return openS3Store({
    ...{ bucket, prefix: directory, limits },
    place: { region: cloudRegion, endpoint: proxy.endpoint },
  });
}

/** The methods that the service was asked with. */
const asked = (): string[] => proxy.seen.map(({ method }) => method);
const subject = (): string => `"a.json" in store "s3://state/${directory}"`;

describe('what may work the next time', () => {
  it.each<[string, Fault]>([
    ['throttling by 503', refusal(503, 'SlowDown')],
    ['throttling by 429', refusal(429, 'TooManyRequests')],
    ['an internal error', refusal(500, 'InternalError')],
    ['a reset connection', { kind: 'reset' }],
    ['an answer that breaks off', { kind: 'cutAnswer' }],
    ['an answer that is lost', { kind: 'loseAnswer' }],
  ])('tries again after %s', async (_, fault) => {
    proxy.fault = (_seen, count) => (count <= 2 ? fault : undefined);
    expect((await store.get('a.json'))?.text).toBe('first');
    expect(asked()).toEqual(['GET', 'GET', 'GET']);
  });

  it.each<[string, Fault, string]>([
    ['throttling by 503', refusal(503, 'SlowDown', 'Please reduce.'), '503 SlowDown: Please reduce.'],
    ['throttling by 429', refusal(429, 'TooManyRequests'), '429 TooManyRequests: It says why.'],
    ['an internal error', refusal(500, 'InternalError'), '500 InternalError: It says why.'],
    ['a reset connection', { kind: 'reset' }, 'ECONNRESET'],
  ])('gives up after four attempts in the face of %s', async (_, fault, cause) => {
    proxy.fault = () => fault;
    await expect(store.get('a.json')).rejects.toMatchObject({
      name: 'UnavailableError',
      message: expect.stringMatching(`^cannot read ${subject()}: .*${cause}`),
    });
    expect(asked()).toEqual(['GET', 'GET', 'GET', 'GET']);
  });

  it('says what a service has answered that asks for an hour, and tries as often', async () => {
    proxy.fault = () => refusal(503, 'SlowDown', 'Please reduce.');
    proxy.answerHeaders = { 'retry-after': '3600' };
    await expect(store.get('a.json')).rejects.toMatchObject({
      message: `cannot read ${subject()}: 503 SlowDown: Please reduce.`,
    });
    expect(asked()).toEqual(['GET', 'GET', 'GET', 'GET']);
  });

  it('tells in one line what a service says in many', async () => {
    proxy.fault = () => refusal(400, 'One\nTwo', `three\nfour${'!'.repeat(5000)}`);
    const error: unknown = await store.get('a.json').catch((failure: unknown) => failure);
    const { message } = error as Error;
    expect(message).toMatch(/: 400 One Two: three four!{900,1000}$/);
  });

  it('gives up on an answer that breaks off each time', async () => {
    proxy.fault = () => ({ kind: 'cutAnswer' });
    await expect(store.get('a.json')).rejects.toMatchObject({
      ...{ name: 'UnavailableError', message: `cannot read ${subject()}: ECONNRESET: aborted` },
    });
    expect(asked()).toHaveLength(3);
  });

  it('tries again within the deadline where a connection went dead', async () => {
    store = open('state', { ...defaultS3Limits, attemptMs: 3_000 });
    proxy.fault = (_seen, count) => (count === 1 ? { kind: 'silence' } : undefined);
    expect((await store.get('a.json'))?.text).toBe('first');
    expect(asked()).toEqual(['GET', 'GET']);
  });

  it.each<[string, Fault]>([
    ['a body that never comes', { kind: 'stall' }],
    ['a body that comes too slowly', { kind: 'trickle', bytesPerSecond: 10 }],
  ])('does not wait for %s', async (_, fault) => {
    await store.put('a.json', 'x'.repeat(100));
    store = open('state', { ...defaultS3Limits, documentMs: 700 });
    proxy.fault = () => fault;
    await expect(store.get('a.json')).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'DEADLINE' },
      message: `cannot read ${subject()}: no whole answer within 0.7 s`,
    });
  });

  it('names a service that is not there', async () => {
    const place = { region: cloudRegion, endpoint: 'http://127.0.0.1:1' };
    const gone = openS3Store({ bucket: 'state', prefix: '', place });
    await expect(gone.list('')).rejects.toMatchObject({
      ...{ name: 'UnavailableError' },
      message: 'cannot list "" in store "s3://state": connect ECONNREFUSED 127.0.0.1:1',
    });
  });

  it('ends at once when it is interrupted', async () => {
    const controller = new AbortController();
    const place = { region: cloudRegion, endpoint: proxy.endpoint };
    const stopped = openS3Store({ bucket: 'state', prefix: directory, place }, controller.signal);
    proxy.fault = () => ({ kind: 'silence' });
    const reading = stopped.get('a.json');
    await expect.poll(() => asked()).toEqual(['GET']);
    controller.abort();
    await expect(reading).rejects.toMatchObject({ message: `cannot read ${subject()}: interrupted` });
  });
});

describe('what trying again does not cure', () => {
  it('tells a refusal, asks once, and once whether it hides that there is nothing', async () => {
    proxy.fault = () => refusal(403, 'AccessDenied');
    const denied = { name: 'UnavailableError', code: 'denied' };
    await expect(store.get('a.json')).rejects.toMatchObject({
      ...{ ...denied, message: `cannot read ${subject()}: 403 AccessDenied: It says why.` },
    });
    expect(asked()).toEqual(['GET', 'GET']);
    await expect(store.put('a.json', 'x')).rejects.toMatchObject({
      ...{ ...denied, message: `cannot write ${subject()}: 403 AccessDenied: It says why.` },
    });
    expect(asked()).toEqual(['GET', 'GET', 'PUT']);
  });

  it('finds out what is missing where only its own prefix may be listed', async () => {
    proxy.fault = ({ path }) => (path.includes('list-type') ? undefined : refusal(403, 'AccessDenied'));
    expect(await store.get('missing.json')).toBeUndefined();
    expect(await store.head('missing.json')).toBeUndefined();
    expect(await store.getStream('missing.json')).toBeUndefined();
    await expect(store.get('a.json')).rejects.toMatchObject({ code: 'denied' });
  });

  it('takes a missing key for nothing, and asks once', async () => {
    expect(await store.get('missing.json')).toBeUndefined();
    expect(asked()).toEqual(['GET']);
  });

  it.each<[string, (asked: Store) => Promise<unknown>]>([
    ['get', (asking) => asking.get('a.json')],
    ['head', (asking) => asking.head('a.json')],
    ['getStream', (asking) => asking.getStream('a.json')],
  ])('does not take a page of somebody in between for a missing key, by %s', async (_, act) => {
    const cannot = `cannot read ${subject()}: ${proxy.endpoint} answers 404, but the list of the bucket `;
    const lists = [
      ['does not say so', () => undefined],
      ['cannot be had: ', () => foreignPage(404)],
      // One that comes with success is no list either.
      ['cannot be had: ', () => foreignPage(200)],
    ] as const;
    for (const [told, list] of lists) {
      proxy.fault = ({ path }) => (path.includes('list-type') ? list() : foreignPage(404));
      await expect(act(store)).rejects.toMatchObject({
        ...{ name: 'UnavailableError', code: 'absence' },
        message: expect.stringContaining(`${cannot}${told}`),
      });
    }
  });

  it('takes a page of somebody in between for no list', async () => {
    proxy.fault = () => foreignPage(200);
    await expect(store.list('')).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'answer' },
      message: `cannot list "" in store "s3://state/${directory}": ${proxy.endpoint} answers with what is no list: is it the right endpoint?`,
    });
  });

  it.each<[string, string, (foreign: Store) => Promise<unknown>]>([
    ['write', 'a.json', (foreign) => foreign.put('a.json', 'x')],
    ['write', 'a.json', (foreign) => foreign.putStream('a.json', Readable.from([Buffer.from('x')]))],
    ['delete', 'a.json', (foreign) => foreign.delete('a.json')],
    ['list', '', (foreign) => foreign.list('')],
  ])('names who answers with a page where it cannot %s %j (R61)', async (verb, key, act) => {
    for (const status of [400, 403, 404]) {
      proxy.fault = () => foreignPage(status);
      const place = `${JSON.stringify(key)} in store "s3://state/${directory}"`;
      await expect(act(store)).rejects.toMatchObject({
        ...{ name: 'UnavailableError', code: 'answer' },
        message: `cannot ${verb} ${place}: ${proxy.endpoint} answers ${status}, and not as the service that is asked for: is the endpoint right?`,
      });
    }
  });

  it.each<[string, (foreign: Store) => Promise<unknown>]>([
    ['read', (foreign) => foreign.get('a.json')],
    ['read', (foreign) => foreign.head('a.json')],
    ['write', (foreign) => foreign.put('a.json', 'x')],
    ['read', (foreign) => foreign.put('a.json', 'x', { ifAbsent: true })],
    ['read', (foreign) => foreign.put('a.json', 'x', { ifMatch: 'abc' })],
  ])('takes a page that comes with success for no document where it is to %s one', async (verb, act) => {
    proxy.fault = () => foreignPage(200);
    await expect(act(store)).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'answer' },
      message: `cannot ${verb} ${subject()}: ${proxy.endpoint} answers without an etag: is it the right endpoint?`,
    });
  });

  it('blames no condition on a page that comes in the midst of its proof', async () => {
    proxy.fault = ({ method }) => (method === 'PUT' ? foreignPage(200) : undefined);
    for (const condition of [{ ifAbsent: true } as const, { ifMatch: 'abc' }]) {
      await expect(store.put('a.json', 'x', condition)).rejects.toMatchObject({ code: 'answer' });
    }
  });

  it('believes an answer without a reason that a list confirms', async () => {
    proxy.fault = ({ method, path }) =>
      method === 'GET' && !path.includes('list-type') ? { kind: 'answer', status: 404 } : undefined;
    expect(await store.get('missing.json')).toBeUndefined();
    expect(await store.head('missing.json')).toBeUndefined();
    expect(asked()).toEqual(['GET', 'GET', 'HEAD', 'GET']);
  });

  it.each<[string, string, (lost: Store) => Promise<unknown>]>([
    ['read', 'get', (lost) => lost.get('a.json')],
    ['read', 'head', (lost) => lost.head('a.json')],
    ['read', 'getStream', (lost) => lost.getStream('a.json')],
    ['write', 'put', (lost) => lost.put('a.json', 'x')],
    ['write', 'putStream', (lost) => lost.putStream('a.json', Readable.from([Buffer.from('x')]))],
    ['delete', 'delete', (lost) => lost.delete('a.json')],
  ])('cannot %s without a bucket, and names it, by %s', async (verb, _, act) => {
    await expect(act(open('no-such-bucket'))).rejects.toMatchObject({
      ...{ name: 'ConfigError', code: 'no-bucket' },
      message: `cannot ${verb} "a.json" in store "s3://no-such-bucket/${directory}": there is no bucket "no-such-bucket" at ${proxy.endpoint}`,
    });
  });

  it('names the region that a bucket is in', async () => {
    proxy.answerHeaders = { 'x-amz-bucket-region': 'eu-west-1' };
    for (const fault of [refusal(301, 'PermanentRedirect'), refusal(400, 'AuthorizationHeaderMalformed')]) {
      proxy.fault = () => fault;
      await expect(store.get('a.json')).rejects.toMatchObject({
        ...{ name: 'ConfigError', code: 'region' },
        message: `cannot read ${subject()}: bucket "state" is in region eu-west-1: set cluster.region`,
      });
    }
  });

  it('takes no proxy that sends elsewhere for another region', async () => {
    proxy.fault = () => foreignPage(301);
    await expect(store.get('a.json')).rejects.toMatchObject({ name: 'UnavailableError', code: 'answer' });
  });

  it('refuses what is wrong for good', async () => {
    proxy.fault = () => refusal(400, 'InvalidRequest');
    await expect(store.put('a.json', 'x')).rejects.toMatchObject({
      ...{ name: 'InputError', message: `cannot write ${subject()}: 400 InvalidRequest: It says why.` },
    });
    expect(asked()).toEqual(['PUT']);
  });
});

describe('a clock that is wrong', () => {
  /** A service whose clock is ahead by this, and which refuses more than a quarter of an hour, as S3 does. */
  const skewed = (aheadMs: number) => {
    const now = (): number => Date.now() + aheadMs;
    return ({ headers }: { headers: Readonly<Record<string, unknown>> }): Fault | undefined => {
      proxy.answerHeaders = { date: new Date(now()).toUTCString() };
      const stamp = String(headers['x-amz-date']);
      const sentAt = Date.parse(stamp.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'));
      return Math.abs(now() - sentAt) > 900_000 ? refusal(403, 'RequestTimeTooSkewed', 'Skewed.') : undefined;
    };
  };

  it('is set right by the date of the service, for all that follows', async () => {
    proxy.fault = skewed(3_600_000);
    expect((await store.get('a.json'))?.text).toBe('first');
    expect(asked()).toEqual(['GET', 'GET']);
    await store.put('a.json', 'second');
    expect(asked()).toEqual(['GET', 'GET', 'PUT']);
  });

  it('is named where that does not help', async () => {
    proxy.fault = () => refusal(403, 'RequestTimeTooSkewed', 'The difference is too large.');
    await expect(store.put('a.json', 'x')).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'clock' },
      message: `cannot write ${subject()}: 403 RequestTimeTooSkewed: The difference is too large.; the clock of this machine seems to be wrong`,
    });
  });
});
