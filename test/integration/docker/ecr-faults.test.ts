// Tokens for AWS's registries when their service throttles, refuses, breaks or is too slow: told apart, one line each.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type EcrToken, obtainToken } from '../../../src/lib/docker/ecr.ts';
import { type EcrService, startEcr } from '../../support/ecr.ts';
import type { Fault } from '../../support/json-service.ts';
import { makeTempDir } from '../../support/temp.ts';

const region = 'eu-north-1';
const action = `cannot get a token for the registries of ${region}`;
let ecr: EcrService;
let file: string;

beforeEach(async () => {
  ecr = await startEcr(region, 'secret-of-the-token');
  file = join(makeTempDir(), 'ecr.json');
  vi.stubEnv('AWS_ENDPOINT_URL_ECR', ecr.endpoint);
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'credential-of-the-test');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await ecr.stop();
});

type Obtained = EcrToken & { renewable: boolean };

function obtain({ now = new Date(), signal }: { now?: Date; signal?: AbortSignal } = {}): Promise<Obtained> {
  return obtainToken({ region, file, now, signal });
}

const refuse = (status: number, type: string, message = 'of the test'): Fault => ({
  ...{ kind: 'refuse', status, type, message },
});
const password = ({ token }: EcrToken): string => Buffer.from(token, 'base64').toString();

describe('a token', () => {
  it.each<[string, Fault]>([
    ['throttles', refuse(400, 'ThrottlingException')],
    ['throttles by 429', refuse(429, 'TooManyRequestsException')],
    ['has an error of its own', refuse(500, 'ServerException')],
    ['is not served', refuse(503, 'ServiceUnavailable')],
    ['resets the connection', { kind: 'reset' }],
  ])('is asked for again where the service %s', async (_, fault) => {
    ecr.faults.push(fault, fault);
    expect(password(await obtain())).toBe('AWS:secret-of-the-token');
    expect(ecr.requests.count).toBe(3);
  });

  it.each<[string, Fault, string | RegExp]>([
    ['throttles', refuse(400, 'ThrottlingException'), '400 ThrottlingException: of the test'],
    ['has errors', refuse(500, 'ServerException'), '500 ServerException: of the test'],
    ['resets', { kind: 'reset' }, /^(read ECONNRESET|ECONNRESET: socket hang up)$/],
  ])('is given up after three tries where the service %s each time', async (_, fault, cause) => {
    ecr.faults.push(fault, fault, fault);
    const error = await obtain().catch((failure: Error) => failure);
    expect(error).toMatchObject({ name: 'UnavailableError', exitCode: 69 });
    const [subject, told = ''] = (error as Error).message.split(/: (.*)/);
    expect(subject).toBe(action);
    expect(told).toEqual(typeof cause === 'string' ? cause : expect.stringMatching(cause));
    expect(ecr.requests.count).toBe(3);
  });

  it.each<[string, Fault, object]>([
    [
      'lacks the right',
      refuse(400, 'AccessDeniedException'),
      { code: 'denied', message: `${action}: 400 AccessDeniedException: of the test` },
    ],
    [
      'lacks the right, by 403',
      refuse(403, 'AccessDeniedException'),
      { code: 'denied', message: `${action}: 403 AccessDeniedException: of the test` },
    ],
    [
      'has credentials that nobody knows',
      refuse(400, 'UnrecognizedClientException'),
      { code: 'denied', message: `${action}: 400 UnrecognizedClientException: of the test` },
    ],
    [
      'asks where there is no such service',
      refuse(404, 'UnknownOperationException'),
      { name: 'InputError', message: `${action}: 404 UnknownOperationException: of the test` },
    ],
    ['gets half an answer', { kind: 'cut' }, { message: `${action}: an answer that is not whole JSON` }],
  ])('is asked for once by a machine that %s', async (_, fault, told) => {
    ecr.faults.push(fault);
    await expect(obtain()).rejects.toMatchObject(told);
    expect(ecr.requests.count).toBe(1);
  });

  it.each([
    ['no base64 of a login', { authorizationToken: '%%%' }, 'the answer has none'],
    ['a login without a colon', { authorizationToken: 'bm90aGluZw==' }, 'the answer has none'],
    ['no text', { authorizationToken: 5 }, 'the answer has none'],
    [
      'good until no time',
      { authorizationToken: 'QVdTOng=', expiresAt: 1e300 },
      'an answer of another shape',
    ],
  ])('that is %s is not kept: the next one is asked for at once', async (_, token, told) => {
    ecr.faults.push({ kind: 'answer', body: { authorizationData: [token] } });
    await expect(obtain()).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'answer', message: `${action}: ${told}` },
    });
    expect(password(await obtain())).toBe('AWS:secret-of-the-token');
    expect(ecr.requests.count).toBe(2);
  });

  it('that is kept and is none is asked for anew', async () => {
    const kept = { ...(await obtain()), token: 'bm90aGluZw==' };
    writeFileSync(file, JSON.stringify({ version: 1, tokens: { [region]: kept } }));
    expect(password(await obtain())).toBe('AWS:secret-of-the-token');
  });

  it.each([
    ['InvalidSignatureException', 'Signature expired: 20260604T030000Z is now earlier than 20260604T040000Z'],
    ['RequestExpired', 'Request has expired.'],
  ])('is refused to a clock that is wrong, which is told (%s)', async (type, message) => {
    const skewed = refuse(400, type, message);
    ecr.faults.push(skewed, skewed, skewed);
    await expect(obtain()).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'clock' },
      message: `${action}: 400 ${type}: ${message}; the clock of this machine seems to be wrong`,
    });
  });

  it.each([
    ['silent', 'stall'],
    ['too slow', 'trickle'],
  ] as const)('is waited for 20 s where the answer is %s', async (_, kind) => {
    ecr.faults.push(...Array.from({ length: 9 }, (): Fault => ({ kind })));
    await expect(obtain()).rejects.toMatchObject({
      ...{ name: 'UnavailableError', code: 'DEADLINE', message: `${action}: no whole answer within 20 s` },
    });
  });

  it('is waited for no longer than the run that asks', async () => {
    ecr.faults.push({ kind: 'stall' });
    const controller = new AbortController();
    const asking = obtain({ signal: controller.signal });
    await vi.waitFor(() => expect(ecr.requests.count).toBe(1), 10_000);
    controller.abort();
    await expect(asking).rejects.toMatchObject({ code: 'INTERRUPTED', message: `${action}: interrupted` });
  });

  it('that is old stands in for a new one in the face of each, as long as it is good', async () => {
    const { token } = await obtain();
    const now = new Date(Date.now() + 7 * 3_600_000);
    const faults = [refuse(403, 'AccessDeniedException'), refuse(404, 'UnknownOperationException')];
    for (const fault of faults) {
      ecr.faults.push(fault);
      expect(await obtain({ now })).toMatchObject({ token, renewable: true });
    }
    ecr.faults.push({ kind: 'reset' }, { kind: 'reset' }, { kind: 'reset' });
    expect(await obtain({ now })).toMatchObject({ token, renewable: true });
    ecr.faults.push(refuse(403, 'AccessDeniedException'));
    await expect(obtain({ now: new Date(Date.now() + 12 * 3_600_000) })).rejects.toMatchObject({
      code: 'denied',
    });
  });
});
