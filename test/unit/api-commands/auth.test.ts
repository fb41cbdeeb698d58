import { describe, expect, it } from 'vitest';
import { createAuthorize } from '../../../src/lib/api-commands/auth.ts';
import { createTurns } from '../../../src/lib/commands/turns.ts';
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

describe('createTurns', () => {
  it('does one thing after another for one key, and different ones at once', async () => {
    const turns = createTurns();
    const told: string[] = [];
    const work = (name: string, ms: number) => async (): Promise<string> => {
      told.push(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve, ms));
      told.push(`${name} ends`);
      return name;
    };
    const all = await Promise.all([
      turns('a', work('1', 30)),
      turns('a', work('2', 0)),
      turns('b', work('3', 0)),
    ]);
    expect(all).toEqual(['1', '2', '3']);
    expect(told).toEqual(['1 begins', '3 begins', '3 ends', '1 ends', '2 begins', '2 ends']);
  });

  it('goes on after a failure, which only its own caller is told', async () => {
    const turns = createTurns();
    const failing = turns('a', () => Promise.reject(new Error('no')));
    const next = turns('a', () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });
});
