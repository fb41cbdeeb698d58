import { describe, expect, it } from 'vitest';
import { createAuthorize } from '../../../src/lib/api-commands/auth.ts';
import { ApiError } from '../../../src/lib/server/route.ts';

describe('createAuthorize', () => {
  const authorize = createAuthorize('tok-3f9c');
  const refusal = new ApiError(401, 'invalid node token');

  it('lets the token through (A20, A79)', () => {
    expect(authorize({ 'x-agenda-node-token': 'tok-3f9c' })).toBeUndefined();
  });

  it.each([undefined, '', 'tok', 'tok-3f9', 'tok-3f9cc', ' tok-3f9c', 'TOK-3F9C', 'tok-3f9c, tok-3f9c'])(
    'refuses %j (A79)',
    (given) => {
      const headers = given === undefined ? {} : { 'x-agenda-node-token': given };
      expect(() => authorize(headers)).toThrow(refusal);
      expect(() => authorize({ ...headers, authorization: 'Bearer tok-3f9c' })).toThrow(refusal);
    },
  );

  it('refuses a header that is there more than once', () => {
    expect(() => authorize({ 'x-agenda-node-token': ['tok-3f9c'] as unknown as string })).toThrow(refusal);
  });

  it('refuses everybody where the token is empty', () => {
    expect(() => createAuthorize('')({ 'x-agenda-node-token': '' })).toThrow(refusal);
    expect(() => createAuthorize('')({})).toThrow(refusal);
  });
});
