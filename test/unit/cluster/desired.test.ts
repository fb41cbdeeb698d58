import { describe, expect, it } from 'vitest';
import { parseDesired } from '../../../src/lib/cluster/desired.ts';
import { InputError } from '../../../src/lib/errors.ts';
import { aDatabase, aDesired, aService, aWebService } from '../../support/builders.ts';

const minimal = { project: 'blog', service: 'web', image: 'img:1', cpu: 1, memory: 64 };

describe('a desired document', () => {
  it('comes back with every default filled in', () => {
    expect(parseDesired(render([minimal]))).toEqual({
      document: { version: 3, nodeId: 'web-1', updatedAt: '2026-06-04T03:00:00.000Z' },
      services: [aService({ image: 'img:1', cpu: 1, memory: 64 })],
      rejected: [],
      warnings: [],
    });
  });

  it('keeps every field of a full service', () => {
    const service = aWebService({
      env: { A: ' x\n', 'weird name': '' },
      secretRefs: [{ name: 'KEY', ssm: '/k' }],
      restartAt: 'now',
      cron: '* * * * *',
      timeZone: 'Europe/Berlin',
      volumes: [{ name: 'data', path: '/data' }],
      database: { engine: 'postgres', version: '15', databases: ['a'] },
      backup: { schedule: '0 3 * * *', retentionDays: 7, bucket: 'b', prefix: 'p/', retention: { daily: 7 } },
      jobRun: { id: 'r', requestedAt: 't' },
    });
    expect(parseDesired(render([service])).services).toEqual([service]);
  });

  it('with no services is a valid document that wants nothing', () => {
    expect(parseDesired(render([]))).toEqual({
      document: { version: 3, nodeId: 'web-1', updatedAt: '2026-06-04T03:00:00.000Z' },
      services: [],
      rejected: [],
      warnings: [],
    });
  });

  it('warns once of all fields that it does not know', () => {
    const services = [
      { ...minimal, colour: 1, ingress: { domain: 'a', port: 1, edge: 'e', tls: true } },
      { ...minimal, service: 'api', colour: 2, volumes: [{ name: 'a', path: '/a', mode: 1 }] },
    ];
    const parsed = parseDesired(JSON.stringify({ ...aDesired(), services, note: 'x' }));
    expect(parsed.warnings).toEqual([
      'fields in "desired.json" that this version does not know are ignored: ' +
        'note, services[].colour, services[].ingress.tls, services[].volumes[].mode',
    ]);
    expect(parsed.services.length).toBe(2);
  });
});

describe('a document that is no document is refused in one sentence (R9)', () => {
  it.each([
    ['empty', '', 'it is empty'],
    ['blank', ' \n', 'it is empty'],
    ['only NULs', '\0'.repeat(4096), 'it holds NUL bytes, as a file does that was cut off by a crash'],
    ['cut in the middle', render([minimal]).slice(0, -20), 'it is cut off'],
    ['cut inside a string', '{"version":3,"nodeId":"we', 'it is cut off'],
    ['no JSON', '{"version":3,\n "nodeId" "x"}', 'it is no JSON at line 2, column 11'],
    ['not an object', '[]', 'it is no JSON object'],
    ['null', 'null', 'it is no JSON object'],
    ['without version', '{}', 'it names no version, and only version 3 is understood'],
    [
      'older',
      JSON.stringify(aDesired([], { version: 2 as 3 })),
      'it is of version 2, and only version 3 is understood',
    ],
    [
      'newer',
      JSON.stringify(aDesired([], { version: 4 as 3 })),
      'it is of version 4, and only version 3 is understood',
    ],
    ['of a version in quotes', '{"version":"3"}', 'it is of version "3", and only version 3 is understood'],
    [
      'without services',
      '{"version":3,"nodeId":"a","updatedAt":"b"}',
      'services: expected array, found undefined',
    ],
    ['50 MB', 'x'.repeat(50_000_000), 'it is larger than 16 MiB'],
    ['nested deeply', '['.repeat(200_000), 'it is nested more than 32 levels deep'],
    ['a hostile string', `"${'\\"'.repeat(4_000_000)}`, 'it is cut off'],
  ])('%s', (_, text, cause) => {
    const parse = (): unknown => parseDesired(text, 'nodes/web-1/desired.json');
    expect(parse).toThrow(new InputError(`cannot read "nodes/web-1/desired.json": ${cause}`));
  });

  it('without a word of its content, which may be secret', () => {
    expect(() => parseDesired('{"env":{"TOKEN":"hunter2"x')).toThrow(/^(?!.*hunter2)/);
  });
});

describe('a service that cannot run is its own error and not the document', () => {
  const fine = aService({ service: 'fine' });
  const ingress = { domain: 'a.example.com', port: 80, edge: 'edge-1' };

  it.each([
    [
      'a name with a slash',
      { project: '../etc' },
      '../etc/web',
      `project: "../etc" is no project name: ${nameRule()}`,
    ],
    [
      'an upper-case name',
      { service: 'Web' },
      'blog/Web',
      `service: "Web" is no service name: ${nameRule()}`,
    ],
    ['an image with a blank', { image: 'a b' }, 'blog/web', 'image: "a b" is no image reference'],
    [
      'an image that is an option',
      { image: '--privileged' },
      'blog/web',
      'image: "--privileged" is no image reference',
    ],
    ['no memory', { memory: undefined }, 'blog/web', 'memory: expected number, found undefined'],
    ['a number for a value', { env: { PORT: 80 } }, 'blog/web', 'env.PORT: expected string, found number'],
    [
      'a variable with "="',
      { env: { 'A=B': 'x' } },
      'blog/web',
      'env: "A=B" is no name of an environment variable',
    ],
    ['a NUL in a value (R50)', { env: { A: 'x\0y' } }, 'blog/web', 'env.A: the value holds a NUL character'],
    [
      'a variable that objects lose',
      { env: JSON.parse('{"__proto__":"x"}') },
      'blog/web',
      'env: a variable cannot be named "__proto__"',
    ],
    [
      'a domain with a newline',
      { ingress: { ...ingress, domain: 'a\nb' } },
      'blog/web',
      'ingress.domain: "a\\nb" is no domain name',
    ],
    [
      'an edge that is a path',
      { ingress: { ...ingress, edge: '../x' } },
      'blog/web',
      'ingress.edge: "../x" is no node id',
    ],
    [
      'a check path with a blank',
      { healthCheck: { path: '/a b' } },
      'blog/web',
      'healthCheck.path: "/a b" is no path of a URL',
    ],
    [
      'a volume named as a path',
      { volumes: [{ name: '../x', path: '/x' }] },
      'blog/web',
      'volumes[0].name: "../x" is no volume name',
    ],
    [
      'two volumes at one path',
      { volumes: [volume('a', '/x'), volume('b', '/x')] },
      'blog/web',
      'volumes[1].path: "/x" is there twice',
    ],
    ['an unknown zone', { timeZone: 'Mars/Base' }, 'blog/web', 'timeZone: "Mars/Base" is no time zone'],
    [
      'a schedule with names',
      { cron: '0 3 * * MON' },
      'blog/web',
      'cron: "0 3 * * MON" is no schedule: day of week "MON" is no number',
    ],
    [
      'a backup at no time',
      { backup: { schedule: '0 25 * * *', retentionDays: 1, bucket: 'b', prefix: '' } },
      'blog/web',
      'backup.schedule: "0 25 * * *" is no schedule: hour 25 is not in 0 to 23',
    ],
    [
      'a backup prefix that climbs',
      { backup: { schedule: '0 3 * * *', retentionDays: 1, bucket: 'b', prefix: 'a/../../b' } },
      'blog/web',
      'backup.prefix: "a/../../b" is no prefix of keys',
    ],
    [
      'more replicas than a node has room for',
      { replicas: 1e9 },
      'blog/web',
      'replicas: cannot be more than 1000',
    ],
    [
      'a deadline that no timer takes',
      { healthCheck: { path: '/', timeoutMs: 2 ** 31 } },
      'blog/web',
      'healthCheck.timeoutMs: cannot be more than 86400000 (a day)',
    ],
    [
      'a drain beyond all dates',
      { rollout: { drainTimeout: '999999999999m' } },
      'blog/web',
      'rollout.drainTimeout: cannot be more than a day (1440m)',
    ],
    [
      'more memory than the engine can write down',
      { memory: Number.MAX_SAFE_INTEGER },
      'blog/web',
      'memory: cannot be more than 16777216 MiB',
    ],
  ])('%s', (_, overrides, key, reason) => {
    const parsed = parseDesired(render([fine, { ...minimal, ...overrides }]));
    expect(parsed.services).toEqual([fine]);
    expect(parsed.rejected).toEqual([
      { index: 1, key, reason, ingress: 'ingress' in overrides ? overrides.ingress : undefined },
    ]);
  });

  it('a database with two replicas: two engines on one volume (R37)', () => {
    expect(parseDesired(render([aDatabase({ replicas: 2 })])).rejected).toEqual([
      {
        index: 0,
        key: 'blog/db',
        reason: 'replicas: a database cannot have 2 replicas: they would be 2 engines on one volume',
        ingress: undefined,
      },
    ]);
  });

  it('two definitions of one service, both of them', () => {
    const parsed = parseDesired(render([aService(), fine, aWebService(), { ...minimal, service: 7 }, 'x']));
    const reason = '"blog/web" is there more than once';
    expect(parsed.services).toEqual([fine]);
    expect(parsed.rejected).toEqual([
      { index: 0, key: 'blog/web', reason, ingress: undefined },
      { index: 2, key: 'blog/web', reason, ingress: aWebService().ingress },
      { index: 3, key: undefined, reason: 'service: expected string, found number', ingress: undefined },
      { index: 4, key: undefined, reason: 'expected object, found string', ingress: undefined },
    ]);
  });

  it('a right definition beside a broken one of the same name, too', () => {
    const parsed = parseDesired(render([aService(), { ...minimal, cpu: -1 }]));
    expect(parsed.services).toEqual([]);
    expect(parsed.rejected.map(({ index, key }) => [index, key])).toEqual([
      [0, 'blog/web'],
      [1, 'blog/web'],
    ]);
  });
});

function render(services: readonly unknown[]): string {
  return JSON.stringify({ ...aDesired(), services }, null, 2);
}

function volume(name: string, path: string): { name: string; path: string } {
  return { name, path };
}

function nameRule(): string {
  return 'use lower-case letters, digits and "-", at most 40, not starting with "-"';
}
