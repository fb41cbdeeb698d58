import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../src/lib/exec/redact.ts';

const secret = 'p@ss "word"\\with/odd=bits';
const forms: [string, string][] = [
  ['as it is', secret],
  ['in JSON', JSON.stringify({ password: secret })],
  ['in a URL', `postgres://app:${encodeURIComponent(secret)}@db/app`],
  ['in base64', Buffer.from(secret).toString('base64')],
  ['in base64url', Buffer.from(secret).toString('base64url')],
  ['in Basic credentials', `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`],
  ['in Basic credentials of another length', `Basic ${Buffer.from(`u:${secret}`).toString('base64')}`],
  ['twice', `${secret} and ${secret}`],
];

describe('createRedactor', () => {
  it.each(forms)('hides a secret %s', (_, text) => {
    const redacted = createRedactor([secret])(text);
    expect(redacted).toContain('***');
    for (const form of [
      secret,
      'p@ss',
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64').slice(4, 20),
    ]) {
      expect(redacted).not.toContain(form);
    }
  });

  it('leaves everything else as it is', () => {
    expect(createRedactor(['hunter22'])('token=hunter22&user=hunter')).toBe('token=***&user=hunter');
  });

  it('hides the longest first where one secret contains another', () => {
    expect(createRedactor(['abcd', 'abcdefgh'])('x=abcdefgh y=abcd')).toBe('x=*** y=***');
  });

  it('ignores values too short to hide', () => {
    expect(createRedactor(['', 'a', '123', '  1 '])('a 123 1')).toBe('a 123 1');
  });

  it('takes no character of a secret for a pattern', () => {
    expect(createRedactor(['a.c*d+(e)'])('a.c*d+(e) abcd')).toBe('*** abcd');
  });

  it('hides each telling line of a key', () => {
    const key = '-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nshort\n-----END KEY-----\n';
    expect(createRedactor([key])('journal: MIIEvQIBADANBgkq\nshort')).toBe('journal: ***\nshort');
    expect(createRedactor([key])(JSON.stringify(key))).toBe('"***"');
  });

  it('copes with half a character', () => {
    expect(createRedactor(['abc\ud800def'])('abc\ud800def')).toBe('***');
  });
});
