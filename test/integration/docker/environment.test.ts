// Values arrive in the container byte for byte, or are refused by name before anything is asked.
import { afterAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/lib/docker/client.ts';
import { engineSocket } from '../../support/engine.ts';

const engine = openEngine({ socket: engineSocket() });
const created: string[] = [];
afterAll(async () => {
  for (const id of created) await engine.removeContainer(id, { force: true });
  engine.close();
});

const pem = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n'.repeat(4)}-----END PRIVATE KEY-----\n`;
const controls = Array.from({ length: 31 }, (_, index) => String.fromCharCode(index + 1)).join('');

const values: Readonly<Record<string, string>> = {
  EMPTY: '',
  SPACE: ' ',
  LEADING_AND_TRAILING: '  both ends \t ',
  NEWLINE: 'one\ntwo',
  TRAILING_NEWLINE: 'value\n',
  ONLY_NEWLINES: '\n\n\n',
  CRLF: 'one\r\ntwo\r\n',
  TRAILING_CR: 'value\r',
  PEM: pem,
  SINGLE_QUOTES: "it's 'quoted'",
  DOUBLE_QUOTES: '"quoted" and "',
  BACKQUOTES: '`id` and `',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the point is that nobody expands it
  DOLLAR: '$HOME ${HOME} $$ $(id) $',
  HASH: '# no comment',
  INNER_HASH: 'value # no comment',
  EQUALS: '==a=b=',
  BACKSLASHES: '\\ \\\\ \\n \\x41 \\',
  PERCENT: '%s %d %% %',
  JSON: '{"a": [1, "two", null], "b": "\\u0041"}',
  YAML: '- a: b\n  c: |\n    d\n',
  BYTE_ORDER_MARK: '\ufeffvalue',
  EMOJI: '😀👩‍👩‍👧‍👦🏴',
  ACCENTS: 'äöüß é e\u0301 Ω 漢字',
  RIGHT_TO_LEFT: 'שלום \u202e مرحبا',
  CONTROLS: controls,
  DELETE_AND_C1: '\u007f\u0080\u0085\u009f',
  LINE_SEPARATORS: 'a\u2028b\u2029c\u0085d',
  HUNDRED_KILOBYTES: 'x'.repeat(100_000),
  LONGEST: 'é'.repeat((131_071 - 'LONGEST='.length - 1) / 2),
  EXCLAMATION: '!! !$ ~ * ? [a] {b,c} ; & | < >',
  'name with spaces': 'value',
  'name-with.other*signs': 'value',
  ÜMLAUT: 'value',
  '1ST': 'value',
  DOCKER_HOST: 'tcp://192.0.2.1:2375',
  DOCKER_CONTEXT: 'elsewhere',
  LD_PRELOAD: '/tmp/evil.so',
  PATH: '/nowhere',
  HOME: '/nowhere',
  HTTP_PROXY: 'http://192.0.2.1:1',
};

describe('variables of a container', () => {
  it('arrive byte for byte in its process (R50)', async () => {
    const { id } = await engine.createContainer({
      name: 'reeve-environment',
      image: 'reeve-demo/box:v1',
      command: ['/bin/busybox', 'base64', '-w', '0', '/proc/1/environ'],
      env: values,
      labels: {},
      restart: 'no',
      ports: [],
      volumes: [],
      logs: { maxSizeBytes: 10_000_000, maxFiles: 1 },
    });
    created.push(id);
    await engine.startContainer(id);
    expect(await engine.waitContainer(id)).toBe(0);
    const log = await engine.containerLogs(id, { tailLines: 1 });
    const arrived = Buffer.from(log, 'base64').toString('utf8').split('\0');
    const altered = Object.entries(values).filter(([name, value]) => !arrived.includes(`${name}=${value}`));
    expect(altered.map(([name]) => name)).toEqual([]);
    const details = await engine.inspectContainer(id);
    const recorded = details?.env ?? [];
    const changed = Object.entries(values).filter(([name, value]) => !recorded.includes(`${name}=${value}`));
    expect(changed.map(([name]) => name)).toEqual([]);
  });

  it('that no process can be given are refused before anything is asked (R50)', async () => {
    const quiet = openEngine({ socket: engineSocket() });
    const refused = quiet.createContainer({
      name: 'reeve-refused',
      image: 'reeve-demo/box:v1',
      env: { FINE: 'a', TOKEN: 'hush\0hush' },
      labels: {},
      restart: 'no',
      ports: [],
      volumes: [],
      logs: { maxSizeBytes: 10_000_000, maxFiles: 1 },
    });
    await expect(refused).rejects.toThrow(
      'cannot create container "reeve-refused": variable "TOKEN" has a NUL character in its value',
    );
    expect(quiet.requestCount).toBe(0);
  });
});
