import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/lib/errors.ts';
import {
  parseInstance,
  parseInstancesMap,
  parsePort,
  parseSingleMap,
  renderInstancesMap,
} from '../../../src/lib/proxy/parse.ts';

describe('an instance', () => {
  it.each(['a', 'blog-1', 'blog_prod', 'Blog.web~2', '7', 'x'.repeat(128)])('may be called %s', (name) => {
    expect(parseInstance(name)).toBe(name);
  });

  it.each([
    ...[
      '',
      '.',
      '..',
      '...',
      '.a',
      '-a',
      '~a',
      'a/b',
      'a%2Fb',
      '%2e%2e',
      'a b',
      'a\tb',
      'a\nb',
      'a\rb',
      'a\0b',
    ],
    ...['a;b', "a'b", 'a"b', 'a\\b', 'a#b', 'a?b', 'ä', 'x'.repeat(129), '#', '@1'],
  ])('is not called %j', (name) => {
    expect(() => parseInstance(name)).toThrow(InputError);
  });
});

describe('a port', () => {
  it.each([1, 80, 65_535, '1', '65535'])('may be %j', (port) => {
    expect(parsePort(port)).toBe(Number(port));
  });

  it.each([
    0,
    -1,
    65_536,
    1.5,
    Number.NaN,
    '',
    '0',
    '-1',
    '1e3',
    '0x50',
    ' 80',
    '80 ',
    '080',
    '99999',
    null,
    undefined,
    true,
    [80],
    {},
  ])('is not %j', (port) => {
    expect(() => parsePort(port)).toThrow(InputError);
  });
});

describe('the registry', () => {
  it('is the same text for the same instances, and reads back (A72, A76)', () => {
    const instances = new Map([
      ['b', 2],
      ['a', 1],
    ]);
    expect(renderInstancesMap(instances)).toBe('a 1\nb 2\n');
    expect(parseInstancesMap(renderInstancesMap(instances))).toEqual(instances);
    expect(renderInstancesMap(new Map())).toBe('');
  });

  it('passes over what is no instance, and takes the first of two, as HAProxy does', () => {
    const text = ['a 1', 'a 2', '# b 3', '', 'c', 'd 0', 'e 99999', '.. 5', '  f   6  ', 'g 7 x', '\0'].join(
      '\r\n',
    );
    expect([...parseInstancesMap(text)]).toEqual([
      ['a', 1],
      ['f', 6],
      ['g', 7],
    ]);
  });

  it('is one line where there is one key', () => {
    expect(parseSingleMap('drain on\n', 'drain')).toBe('on');
    expect(parseSingleMap('', 'drain')).toBeUndefined();
    expect(parseSingleMap('other on\n', 'drain')).toBeUndefined();
  });
});
