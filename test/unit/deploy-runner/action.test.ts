import { describe, expect, it } from 'vitest';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { actionIdOf, contentKey, markerKey, markerKeyPattern } from '../../../src/lib/deploy-runner/key.ts';
import { maxActionBytes, parseActionFileName } from '../../../src/lib/deploy-runner/names.ts';

const raw = {
  action_id: 'redeploy-vps-grafana',
  type: 'redeploy',
  node: 'vps',
  service: 'grafana',
  risk: 'guarded',
  status: 'approved',
  created_at: 1_785_700_000,
  updated_at: 1_785_700_100.25,
  details: { image: 'grafana/grafana:11', reason: 'unhealthy for 10 minutes', diff: '' },
  transition_history: [
    { from: null, to: 'pending', timestamp: 1_785_700_000, by: 'system' },
    { from: 'pending', to: 'approved', timestamp: 1_785_700_100.25, by: 'operator-tg-7' },
  ],
};

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const keyOf = (value: unknown): string => markerKey(parseAction(bytesOf(value)), bytesOf(value));

describe('an action', () => {
  it('has the fields of the seed, and no other reaches anybody (D34)', () => {
    const hostile = {
      command: 'rm -rf /',
      args: ['x'],
      image: 'evil',
      env: { PATH: '/tmp' },
      __proto__: { a: 1 },
    };
    const bytes = Buffer.from(
      JSON.stringify({ ...raw, ...hostile, details: { ...raw.details, command: 'x' } }).replace(
        '{',
        '{"__proto__":{"script":"/tmp/x"},',
      ),
    );
    expect(parseAction(bytes)).toStrictEqual({
      ...{ actionId: 'redeploy-vps-grafana', type: 'redeploy', node: 'vps', service: 'grafana' },
      ...{ risk: 'guarded', status: 'approved', createdAt: 1_785_700_000, updatedAt: 1_785_700_100.25 },
      details: { image: 'grafana/grafana:11', reason: 'unhealthy for 10 minutes', diff: '' },
      transitions: [
        { to: 'pending', timestamp: 1_785_700_000, by: 'system' },
        { from: 'pending', to: 'approved', timestamp: 1_785_700_100.25, by: 'operator-tg-7' },
      ],
    });
  });

  it('needs no more than id, type and node', () => {
    const least = { action_id: 'disk-cleanup-vps', type: 'disk-cleanup', node: 'vps', service: null };
    expect(parseAction(bytesOf(least))).toStrictEqual({
      ...{ actionId: 'disk-cleanup-vps', type: 'disk-cleanup', node: 'vps', details: {}, transitions: [] },
    });
  });

  it('that others could not parse or render again is refused: a byte order mark, ten thousand levels', () => {
    const text = JSON.stringify(raw);
    expect(() => parseAction(Buffer.from(`\ufeff${text}`))).toThrow('invalid action: it is not whole JSON');
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const nested = (levels: number): Buffer =>
        Buffer.from(text.replace('{', `{"x":${open.repeat(levels)}1${close.repeat(levels)},`));
      expect(() => parseAction(nested(10_000))).toThrow('invalid action: it has more than 50 levels');
      expect(() => parseAction(nested(50))).toThrow('it has more than 50 levels');
      expect(parseAction(nested(49)).actionId).toBe('redeploy-vps-grafana');
    }
  });

  it.each<[string, unknown, string]>([
    ['a list', [], 'it is no object'],
    ['a text', 'redeploy', 'it is no object'],
    ['null', null, 'it is no object'],
    ['no id', { ...raw, action_id: undefined }, 'action_id is no text'],
    [
      'an id that climbs',
      { ...raw, action_id: '../x' },
      'action_id is no id of lower-case letters, digits and "-"',
    ],
    [
      'an id with a line break',
      { ...raw, action_id: 'x\n' },
      'action_id is no id of lower-case letters, digits and "-"',
    ],
    [
      'an id of 65 characters',
      { ...raw, action_id: 'a'.repeat(65) },
      'action_id is no id of lower-case letters, digits and "-"',
    ],
    ['a type with a blank', { ...raw, type: 're deploy' }, 'type is no type'],
    ['a number as type', { ...raw, type: 7 }, 'type is no text'],
    ['a node that climbs', { ...raw, node: '..' }, "node is no node's name"],
    ['a node with a slash', { ...raw, node: 'a/b' }, "node is no node's name"],
    ['a history that is no list', { ...raw, transition_history: {} }, 'transition_history is no list'],
    [
      'a history without who',
      { ...raw, transition_history: [{ to: 'approved', timestamp: 1 }] },
      'transition_history[0].by is no text',
    ],
    [
      'too long a history',
      { ...raw, transition_history: Array(1001).fill(raw.transition_history[0]) },
      'larger',
    ],
  ])('with %s is refused by its field (D45)', (_, value, problem) => {
    expect(() => parseAction(bytesOf(value))).toThrow(problem);
    expect(() => parseAction(bytesOf(value))).toThrow(expect.objectContaining({ code: 'input' }));
  });

  it.each([
    'a/b',
    '../grafana',
    'a.b',
    'a b',
    '-a',
    'a-',
    'a--b',
    'Grafana',
    'grafana\n',
    'gräfana',
    'ɡrafana',
    'a_b',
    'a;b',
    '$(id)',
    '--help',
    'a\0b',
    'a'.repeat(64),
  ])('with the service %j is refused (D30)', (service) => {
    expect(() => parseAction(bytesOf({ ...raw, service }))).toThrow('service is no kebab-case name');
  });

  it.each<[string, Buffer, string]>([
    ['cut JSON', bytesOf(raw).subarray(0, 100), 'it is not whole JSON'],
    ['an empty file', Buffer.alloc(0), 'it is not whole JSON'],
    ['NULs', Buffer.alloc(200), 'it is not whole JSON'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'it is not whole JSON'],
    ['a byte more than it may have', Buffer.alloc(maxActionBytes + 1, ' '), 'it is larger than 65536 bytes'],
    ['10,000 brackets', Buffer.from('['.repeat(10_000)), 'it is not whole JSON'],
  ])('that is %s is refused (D45)', (_, bytes, problem) => {
    expect(() => parseAction(bytes)).toThrow(`invalid action: ${problem}`);
  });
});

describe('the name of an action’s file', () => {
  it.each([
    ['redeploy-vps-grafana.json', 'redeploy-vps-grafana'],
    ['a.json', 'a'],
    [`${'a'.repeat(64)}.json`, 'a'.repeat(64)],
  ])('%j stands for %j', (name, id) => expect(parseActionFileName(name)).toBe(id));

  it.each([
    '.json',
    'a',
    'A.json',
    '-a.json',
    'a.json.json',
    '.a.json',
    '.a.json.Xy12Zw',
    'a.json\n',
    'a\n.json',
    'a b.json',
    '../a.json',
    'a/b.json',
    'a.JSON',
    'ａ.json',
    'а.json',
    `${'a'.repeat(65)}.json`,
    'evt-1.tmp',
    '.~tmp~',
    '.part',
  ])('%j stands for none (D46, O64)', (name) => expect(parseActionFileName(name)).toBeUndefined());
});

describe('the key of a marker (D42)', () => {
  const [pending, approved] = raw.transition_history;
  const later = { ...approved, timestamp: 1_785_800_000 };

  it('is the id and a digest of who approved what, and when', () => {
    expect(keyOf(raw)).toBe(
      'redeploy-vps-grafana-3233b62d3afdfabcc563259ff233f9029dd91dd0d494fb05d32db53c6bc1c52c',
    );
    expect(keyOf(raw)).toMatch(markerKeyPattern);
    expect(actionIdOf(keyOf(raw))).toBe(raw.action_id);
  });

  it.each<[string, object]>([
    ['other details', { details: { reason: 'other' } }],
    ['another status', { status: 'running', updated_at: 1_785_700_200 }],
    [
      'what came after it',
      { transition_history: [pending, approved, { ...approved, from: 'approved', to: 'running' }] },
    ],
    ['what came before it', { transition_history: [{ ...later, to: 'pending' }, approved] }],
    ['fields that nobody knows', { command: 'x' }],
  ])('is the same with %s', (_, more) => expect(keyOf({ ...raw, ...more })).toBe(keyOf(raw)));

  it.each<[string, object]>([
    ['a later approval', { transition_history: [pending, approved, later] }],
    ['an approval by another', { transition_history: [pending, { ...approved, by: 'webui' }] }],
    ['another service', { service: 'loki' }],
    ['no service', { service: undefined }],
    ['another type', { type: 'restart' }],
    ['another node', { node: 'pi' }],
    ['the time as text', { transition_history: [pending, { ...approved, timestamp: '1785700100.25' }] }],
  ])('is another with %s', (_, more) => expect(keyOf({ ...raw, ...more })).not.toBe(keyOf(raw)));

  it.each<[string, object]>([
    ['no history', { transition_history: undefined }],
    ['an empty history', { transition_history: [] }],
    ['no approval in its history', { transition_history: [pending] }],
  ])('is of the whole file with %s', (_, more) => {
    const value = { ...raw, ...more };
    expect(keyOf(value)).toBe(contentKey(raw.action_id, bytesOf(value)));
    expect(keyOf({ ...value, risk: 'nominal' })).not.toBe(keyOf(value));
  });
});
