// Secrets from the parameter store, asked over a real connection of a server that refuses what AWS would refuse.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openSecrets, type SecretRef, type SecretSource } from '../../../src/lib/secrets/secrets.ts';
import { isAllowed } from '../../../src/lib/secrets/ssm.ts';
import type { Fault } from '../../support/json-service.ts';
import { type SsmServer, startSsm } from '../../support/ssm-server.ts';

let ssm: SsmServer;
beforeEach(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'credential-of-the-test');
  ssm = await startSsm();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await ssm.stop();
});

function open(signal?: AbortSignal): Promise<SecretSource> {
  return openSecrets('ssm', { clusterId: 'prod', region: 'us-east-1', endpoint: ssm.endpoint, signal });
}

const nameOf = (key: string): string => `/launch-pad/prod/blog/web/${key}`;
const ref = (key: string): SecretRef => ({ name: key, ssm: nameOf(key) });
const keys = (count: number): string[] => Array.from({ length: count }, (_, index) => `KEY_${index}`);

function put(...names: string[]): void {
  for (const name of names) ssm.parameters.set(nameOf(name), `value of ${name}`);
}

async function failureOf(work: Promise<unknown>): Promise<Error & { exitCode?: number }> {
  return await work.then(
    () => {
      throw new Error('it has not failed');
    },
    (error) => error,
  );
}

describe('secrets from the parameter store', () => {
  it('are given by their names, decrypted and byte for byte (L139)', async () => {
    const values = { A: 'one', B: 'with "quotes"\nand ü€😀\n', C: ' ' };
    for (const [key, value] of Object.entries(values)) ssm.parameters.set(nameOf(key), value);
    const source = await open();
    expect(
      await source.resolve([ref('A'), ref('B'), ref('C'), { name: 'ALSO_A', ssm: nameOf('A') }]),
    ).toEqual({
      ...values,
      ALSO_A: 'one',
    });
    expect(ssm.calls).toEqual([
      {
        operation: 'GetParameters',
        input: { Names: [nameOf('A'), nameOf('B'), nameOf('C')], WithDecryption: true },
      },
    ]);
  });

  it('are asked for by tens, and by three calls at once at most', async () => {
    put(...keys(65));
    ssm.delayMs = 1_000;
    const source = await open();
    const values = await source.resolve(keys(65).map(ref));
    expect(Object.keys(values)).toHaveLength(65);
    expect(ssm.calls.map(({ input }) => (input['Names'] as string[]).length)).toEqual([
      10, 10, 10, 10, 10, 10, 5,
    ]);
    expect(ssm.requests.atOnce).toBe(3);
  });

  it('are asked for once by ten containers that start at once or one after another', async () => {
    put('A', 'B');
    const source = await open();
    await Promise.all(Array.from({ length: 9 }, () => source.resolve([ref('A'), ref('B')])));
    expect(await source.resolve([ref('B')])).toEqual({ B: 'value of B' });
    expect(ssm.requests.count).toBe(1);
  });

  it('of a version are those of the version', async () => {
    ssm.parameters.set(`${nameOf('A')}:3`, 'third');
    ssm.parameters.set(nameOf('A'), 'latest');
    const source = await open();
    const refs = [ref('A'), { name: 'OLD', ssm: `${nameOf('A')}:3` }];
    expect(await source.resolve(refs)).toEqual({ A: 'latest', OLD: 'third' });
  });

  it('need no call where there are no references', async () => {
    expect(await (await open()).resolve([])).toEqual({});
    expect(ssm.requests.count).toBe(0);
  });

  it('that are missing are all named, and found once they are there', async () => {
    put('A');
    const source = await open();
    const error = await failureOf(source.resolve([ref('A'), ref('B'), ref('C')]));
    expect(error).toMatchObject({
      exitCode: 1,
      code: 'secrets',
      message: [
        `cannot resolve secrets: B ("${nameOf('B')}") is missing: there is no parameter ${nameOf('B')} in us-east-1`,
        `C ("${nameOf('C')}") is missing: there is no parameter ${nameOf('C')} in us-east-1`,
      ].join('; '),
    });
    put('B', 'C');
    expect(await source.resolve([ref('B'), ref('C')])).toEqual({ B: 'value of B', C: 'value of C' });
  });

  it('with a name that is not allowed are refused before any call', async () => {
    put('A');
    const refs = [ref('A'), { name: 'B', ssm: '/launch-pad/other/blog/web/B' }];
    const source = await open();
    const error = await failureOf(source.resolve(refs));
    expect(error.message).toBe(
      'cannot resolve secrets: B ("/launch-pad/other/blog/web/B") has a name that is not below /launch-pad/prod/',
    );
    expect(ssm.calls.map(({ input }) => input['Names'])).toEqual([[nameOf('A')]]);
  });

  it('that may not be read are told from the nine that were asked for with them', async () => {
    put(...keys(10));
    const denial = 'The ciphertext refers to a customer master key that you are not allowed to access.';
    ssm.denied.set(nameOf('KEY_4'), denial);
    const source = await open();
    const error = await failureOf(source.resolve(keys(10).map(ref)));
    expect(error).toMatchObject({
      exitCode: 69,
      message: `cannot resolve secrets: KEY_4 ("${nameOf('KEY_4')}") cannot be read: 400 AccessDeniedException: ${denial}`,
    });
    const others = keys(10).filter((key) => key !== 'KEY_4');
    expect(Object.keys(await source.resolve(others.map(ref)))).toEqual(others);
  });
});

describe('the name of a parameter', () => {
  it.each([
    [nameOf('A'), true],
    ['/launch-pad/prod/A', true],
    [`${nameOf('A')}:12`, true],
    [`${nameOf('A')}:stable`, true],
    ['/launch-pad/prod', false],
    ['/launch-pad/prod/', false],
    ['/launch-pad/prod/a//b', false],
    ['/launch-pad/prod/a b', false],
    ['/launch-pad/prod/a*', false],
    [`${nameOf('A')}:1:2`, false],
    [`${nameOf('A')}:`, false],
    ['launch-pad/prod/A', false],
    ['arn:aws:ssm:us-east-1:123456789012:parameter/launch-pad/prod/A', false],
    [`/launch-pad/prod/${'a/'.repeat(14)}a`, false],
    [`/launch-pad/prod/${'a'.repeat(1000)}`, false],
  ])('%s is allowed: %s', (name, allowed) => {
    expect(isAllowed(name, 'prod')).toBe(allowed);
  });
});

describe('a parameter store that fails', () => {
  const throttled: Fault = {
    kind: 'refuse',
    status: 400,
    type: 'ThrottlingException',
    message: 'Rate exceeded',
  };
  const broken: Fault = { kind: 'refuse', status: 500, type: 'InternalServerError', message: 'oh' };

  it.each([
    ['throttles', throttled],
    ['has an error of its own', broken],
    ['resets the connection', { kind: 'reset' }],
  ] satisfies [string, Fault][])('once is asked again: it %s', async (_title, fault) => {
    put('A');
    ssm.faults.push(fault);
    expect(await (await open()).resolve([ref('A')])).toEqual({ A: 'value of A' });
    expect(ssm.requests.count).toBe(2);
  });

  const subject = `A ("${nameOf('A')}"), B ("${nameOf('B')}") cannot be read`;
  it.each([
    ['throttles', throttled, '400 ThrottlingException: Rate exceeded'],
    ['has errors', broken, '500 InternalServerError: oh'],
    ['resets', { kind: 'reset' }, 'reset'],
  ] satisfies [string, Fault, string][])(
    'time and again says so in one line: it %s',
    async (_title, fault, cause) => {
      put('A', 'B');
      ssm.faults.push(fault, fault, fault);
      const error = await failureOf((await open()).resolve([ref('A'), ref('B')]));
      expect([
        error.exitCode,
        error.message.replace(/(read ECONNRESET|ECONNRESET: socket hang up)$/, 'reset'),
      ]).toEqual([69, `cannot resolve secrets: ${subject}: ${cause}`]);
      expect(ssm.requests.count).toBe(3);
    },
  );

  it.each([
    ['a parameter that is none', { Parameters: [null] }],
    ['a value that is no text', { Parameters: [{ Name: nameOf('A'), Value: { secret: 'shown' } }] }],
  ])('by %s is no fault of the release, and shows nothing of it', async (_title, body) => {
    put('A');
    ssm.faults.push({ kind: 'answer', body });
    const source = await open();
    const error = await failureOf(source.resolve([ref('A')]));
    expect([error.exitCode, error.message]).toEqual([
      69,
      `cannot resolve secrets: A ("${nameOf('A')}") cannot be read: an answer of another shape`,
    ]);
    expect(await source.resolve([ref('A')])).toEqual({ A: 'value of A' });
  });

  it.each([
    ['UnrecognizedClientException', 'The security token included in the request is invalid.'],
    ['ExpiredTokenException', 'The security token included in the request is expired'],
  ])('by %s is told as a right that is lacking, and not asked again', async (type, message) => {
    put('A');
    ssm.faults.push({ kind: 'refuse', status: 400, type, message });
    const error = await failureOf((await open()).resolve([ref('A')]));
    expect([error.exitCode, error.message]).toEqual([
      69,
      `cannot resolve secrets: A ("${nameOf('A')}") cannot be read: 400 ${type}: ${message}`,
    ]);
    expect(ssm.requests.count).toBe(1);
  });

  it('over the clock says that it is the clock', async () => {
    put('A');
    const message = 'Signature expired: 20260604T030000Z is now earlier than 20260604T040000Z';
    const skewed: Fault = { kind: 'refuse', status: 400, type: 'InvalidSignatureException', message };
    ssm.faults.push(skewed, skewed, skewed);
    const error = await failureOf((await open()).resolve([ref('A')]));
    expect(error.message).toContain(`${message}; the clock of this machine seems to be wrong`);
  });

  it('with half an answer shows nothing of what was in it', async () => {
    ssm.parameters.set(nameOf('A'), 'geheim'.repeat(40));
    const cut: Fault = { kind: 'cut' };
    ssm.faults.push(cut, cut, cut);
    const error = await failureOf((await open()).resolve([ref('A')]));
    expect([error.exitCode, error.message]).toEqual([
      69,
      `cannot resolve secrets: A ("${nameOf('A')}") cannot be read: an answer that is not whole JSON`,
    ]);
    expect(error.cause).toBeUndefined();
  });

  it('by silence in an answer ends with the run that asked', async () => {
    put('A');
    ssm.faults.push({ kind: 'stall' });
    const controller = new AbortController();
    const work = failureOf((await open(controller.signal)).resolve([ref('A')]));
    await vi.waitFor(() => expect(ssm.calls).toHaveLength(1), 10_000);
    controller.abort();
    expect((await work).message).toContain('cannot be read: interrupted');
  });

  it.each([
    ['by a right that is lacking', 403, 'AccessDeniedException', 69],
    ['by an address where there is no such service', 404, 'UnknownOperationException', 1],
  ])('%s is told with its status %i, and asked once', async (_title, status, type, exitCode) => {
    put('A');
    ssm.faults.push({ kind: 'refuse', status, type, message: 'of the test' });
    const error = await failureOf((await open()).resolve([ref('A')]));
    expect([error.exitCode, error.message]).toEqual([
      exitCode,
      `cannot resolve secrets: A ("${nameOf('A')}") cannot be read: ${status} ${type}: of the test`,
    ]);
    expect(ssm.requests.count).toBe(1);
  });

  it.each([
    ['silence', 'stall'],
    ['a trickle', 'trickle'],
  ] as const)('by %s in an answer is given up after its deadline', async (_title, kind) => {
    put('A');
    ssm.faults.push(...Array.from({ length: 9 }, (): Fault => ({ kind })));
    const error = await failureOf((await open()).resolve([ref('A')]));
    expect([error.exitCode, error.message]).toEqual([
      69,
      `cannot resolve secrets: A ("${nameOf('A')}") cannot be read: no whole answer within 20 s`,
    ]);
  });
});
