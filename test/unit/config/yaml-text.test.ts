import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderScalar, renderYaml } from '../../../src/lib/config/yaml-text.ts';

describe('renderYaml', () => {
  it('prints nested mappings indented and lists in brackets', () => {
    const value = {
      cluster: { nodeId: 'web-1', role: ['app', 'edge'], intervals: { tick: '60s' }, once: false, none: {} },
      command: ['/usr/local/bin/page', '{unit}'],
      machine_id: 42,
      port: null,
    };
    expect(renderYaml(value)).toEqual([
      'cluster:',
      '  nodeId: web-1',
      '  role: [app, edge]',
      '  intervals:',
      '    tick: "60s"',
      '  once: false',
      '  none: {}',
      'command: [/usr/local/bin/page, "{unit}"]',
      'machine_id: 42',
      'port: null',
    ]);
    expect(parse(renderYaml(value).join('\n'))).toEqual(value);
  });
});

describe('renderScalar', () => {
  it.each([
    '',
    ' ',
    'a b',
    'true',
    'No',
    'null',
    '~',
    '0.0.0.0',
    '12',
    '1e3',
    'key:',
    'a: b',
    'a #b',
    '#',
    '- x',
    '[x',
    'x, y',
    '"q"',
    "it's",
    'back\\slash',
    'line\nbreak',
    'tab\t',
    '\u0085\u2028',
    '😀',
    '***',
    'http://user@host:1/x?y=%20',
  ])('gives %j back to a parser, alone, as a value and in a list', (text) => {
    const scalar = renderScalar(text);
    for (const version of ['1.1', '1.2'] as const) {
      expect(parse(`key: ${scalar}\nlist: [${scalar}, ${scalar}]`, { version })).toEqual({
        key: text,
        list: [text, text],
      });
    }
  });
});
