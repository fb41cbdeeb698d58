import { describe, expect, it } from 'vitest';
import { requireKey, requirePrefix } from '../../../src/lib/store/key.ts';

describe('store keys', () => {
  it.each([
    'a',
    'nodes/web-1/desired.json',
    'backups/naïve/2026-06-04T03-00-00Z.sql.gz',
    'a b',
    'x'.repeat(240),
  ])('accept %j', (key) => {
    expect(() => requireKey(key)).not.toThrow();
  });

  it.each([
    ['', 'it is empty'],
    ['/etc/passwd', 'it begins with a slash'],
    ['a//b', 'a part of it is empty'],
    ['a/', 'a part of it is empty'],
    ['../a', 'a part of it begins with a dot'],
    ['a/.locks', 'a part of it begins with a dot'],
    ['a\0', 'it has a control character or half a character'],
    ['a\ud83d', 'it has a control character or half a character'],
    ['x'.repeat(241), 'a part of it is longer than 240 bytes'],
    ['é/'.repeat(400).slice(0, -1), 'it is longer than 1024 bytes'],
  ])('refuse %j', (key, fault) => {
    expect(() => requireKey(key)).toThrow(`cannot use store key ${JSON.stringify(key)}: ${fault}`);
  });

  it.each(['', 'a', 'a/', 'nodes/web'])('accept the prefix %j', (prefix) => {
    expect(() => requirePrefix(prefix)).not.toThrow();
  });
});
