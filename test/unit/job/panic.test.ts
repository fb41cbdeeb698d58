import { describe, expect, it } from 'vitest';
import { InternalError, StepError, UnavailableError } from '../../../src/lib/errors.ts';
import { describeBug } from '../../../src/lib/job/panic.ts';

describe('what fails while a job is told to stop', () => {
  it.each([
    ['an exception', new TypeError('nobody has foreseen this'), 'nobody has foreseen this'],
    ['a bug that was noticed', new InternalError('no container'), 'internal error: no container'],
  ])('is told, where it is %s', (_, error, message) => expect(describeBug(error)).toBe(message));

  it.each([
    ['the stop itself', new UnavailableError('interrupted', { code: 'interrupted' })],
    ['an aborted request', new DOMException('aborted', 'AbortError')],
    ['a step that the next run repeats', new StepError('cannot write')],
  ])('is nothing to tell, where it is %s', (_, error) => expect(describeBug(error)).toBeUndefined());
});
