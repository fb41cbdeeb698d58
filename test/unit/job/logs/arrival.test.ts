import { describe, expect, it } from 'vitest';
import { ControlPlaneError } from '../../../../src/lib/control-plane/control-plane.ts';
import { UnavailableError } from '../../../../src/lib/errors.ts';
import { mayHaveArrived } from '../../../../src/lib/job/logs/arrival.ts';

const failedWith = (code: string): Error => {
  const cause = new UnavailableError('cannot reach it', { cause: Object.assign(new Error(code), { code }) });
  return new ControlPlaneError('cannot send', { cause });
};

describe('P63: a chunk that could not be sent', () => {
  it.each(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])(
    'is not there after %s: its number, if it is taken, is of another',
    (code) => expect(mayHaveArrived(failedWith(code))).toBe(false),
  );

  it.each(['ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ABORT_ERR'])('may be there after %s', (code) => {
    expect(mayHaveArrived(failedWith(code))).toBe(true);
  });

  it('may be there after an answer that says nothing of it', () => {
    expect(mayHaveArrived(new ControlPlaneError('answered 503', { status: 503 }))).toBe(true);
  });
});
