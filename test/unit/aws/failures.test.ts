import { describe, expect, it } from 'vitest';
import { toCloudError } from '../../../src/lib/aws/failures.ts';

const failure = (status: number, name: string): Error =>
  Object.assign(new Error('It says\n why.'), { name, $metadata: { httpStatusCode: status } });

describe('what a service answers', () => {
  it.each([
    [400, 'RequestTimeout'],
    [408, 'RequestTimeoutException'],
    [400, 'ThrottlingException'],
    [429, 'AnyName'],
    [503, 'SlowDown'],
    [500, 'InternalError'],
  ])('with %i %s may be another thing the next time, and is one line', (status, name) => {
    expect(toCloudError(failure(status, name), 'ask')).toMatchObject({
      ...{ name: 'UnavailableError', code: name, message: `cannot ask: ${status} ${name}: It says why.` },
    });
  });

  it.each([
    [400, 'InvalidParameter'],
    [404, 'NotFound'],
    [412, 'PreconditionFailed'],
  ])('with %i %s is refused for good', (status, name) => {
    expect(toCloudError(failure(status, name), 'ask')).toMatchObject({ name: 'InputError', code: name });
  });
});
