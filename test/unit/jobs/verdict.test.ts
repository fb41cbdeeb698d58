import { describe, expect, it } from 'vitest';
import { ControlPlaneError } from '../../../src/lib/control-plane/control-plane.ts';
import { judgeAnswer, judgeStatus } from '../../../src/lib/jobs/verdict.ts';

describe('P41, P61: an answer to the end of a job', () => {
  it.each([
    ['trouble', [undefined, 500, 502, 503, 504, 599]],
    ['not-now', [200, 204, 301, 302, 401, 407, 408, 425, 429]],
    ['refused', [400, 404, 405, 409, 410, 413, 415, 422]],
  ] as const)('is %s after %j', (verdict, statuses) => {
    const judged = statuses.map((status) => judgeAnswer({ status, answer: 'no' }));
    expect(judged).toEqual(statuses.map(() => verdict));
  });

  it.each([
    ['not-now', 'this role may not'],
    ['not-now', ''],
    ['refused', '{"error":"job is not assigned to this node"}'],
  ] as const)('is %s after 403 and %j', (verdict, answer) => {
    expect(judgeAnswer({ status: 403, answer })).toBe(verdict);
  });
});

describe('P61: a request that failed', () => {
  const isTransient = (status: number | undefined): boolean =>
    new ControlPlaneError('cannot ask', status === undefined ? {} : { status }).isTransient;

  it.each([
    [true, [undefined, 204, 302, 408, 425, 429, 500, 503]],
    [false, [400, 401, 403, 404, 407, 409, 413]],
  ] as const)('is worth another attempt: %s after %j', (expected, statuses) => {
    expect(statuses.map(isTransient)).toEqual(statuses.map(() => expected));
  });

  it('is never refused for good as the end of a job where it is worth another attempt', () => {
    const statuses = Array.from({ length: 500 }, (_, index) => 100 + index);
    const both = statuses.filter(
      (status) => isTransient(status) && judgeAnswer({ status, answer: '' }) === 'refused',
    );
    expect(both).toEqual([]);
  });
});

describe('P41: the status of a job in the server’s word', () => {
  it.each([
    ['ended', ['Success', 'FAIL', 'error', 'Cancelled']],
    ['running', ['Running', 'RUNNING']],
    ['waiting', ['Created', 'Queued', '']],
  ] as const)('is %s as one of %j', (verdict, words) => {
    expect(words.map(judgeStatus)).toEqual(words.map(() => verdict));
  });
});
