import { describe, expect, test } from 'vitest';
import { parseEntries, parseEntry } from '../../../src/lib/ploy/entries.ts';

describe('an entry', () => {
  test.each([
    ['in', 'abcdef0:/in/x', { dst: '/in/x', readOnly: true }],
    ['in', `${'a'.repeat(64)}:/in//x/./y`, { dst: '/in/x/y', readOnly: true }],
    ['out', 'abcdef0:/out/a:b', { dst: '/out/a:b', readOnly: false }],
    ['tmp', 'abcdef0:/tmp/x/', { dst: '/tmp/x', readOnly: false }],
    ['home', 'abcdef0:.config/x', { dst: '.config/x', readOnly: false }],
    ['home', 'abcdef0:x:ro', { dst: 'x', readOnly: true }],
    ['in', 'abcdef0:/in/x:ro', { dst: '/in/x:ro', readOnly: true }],
  ] as const)('of %s, %s, says where its bundle goes', (section, text, place) => {
    expect(parseEntry(section, text)).toMatchObject({ section, ...place });
  });

  test.each([
    ['in', '/in/x', 'no ":"'],
    ['in', 'abcdef:/in/x', '7 to 64'],
    ['in', `${'a'.repeat(65)}:/in/x`, '7 to 64'],
    ['in', 'ABCDEF0:/in/x', '7 to 64'],
    ['in', 'abcdef0:', 'no destination'],
    ['in', 'abcdef0:  ', 'no destination'],
    ['in', 'abcdef0:/in', 'not below /in/'],
    ['in', 'abcdef0:/in/', 'not below /in/'],
    ['in', 'abcdef0:/inside/x', 'not below /in/'],
    ['in', 'abcdef0:/out/x', 'not below /in/'],
    ['in', 'abcdef0:/in/../etc/passwd', '".."'],
    ['in', 'abcdef0:/in/a/../b', '".."'],
    ['out', 'abcdef0:out/x', 'not below /out/'],
    ['tmp', 'abcdef0:/tmp/\0x', 'characters'],
    ['tmp', 'abcdef0:/tmp/\ud800', 'characters'],
    ['home', 'abcdef0:/etc/passwd', 'not below the home'],
    ['home', 'abcdef0:.', 'the home itself'],
    ['home', 'abcdef0:a/../../b', '".."'],
    ['home', 'abcdef0::ro', 'no destination'],
  ] as const)('of %s, %j, is refused', (section, text, message) => {
    expect(() => parseEntry(section, text)).toThrow(message);
  });

  test('cannot have the place of another one, however that is written', () => {
    expect(() => parseEntries('in', ['abcdef0:/in/x', 'abcdef1:/in//x/'])).toThrow(
      'in[1]: its destination is taken by another entry',
    );
    expect(parseEntries('in', ['abcdef0:/in/x', 'abcdef0:/in/y'])).toHaveLength(2);
  });
});
