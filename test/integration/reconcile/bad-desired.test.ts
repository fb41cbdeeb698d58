// Desired states that are damaged, hostile or half wrong: each is refused in one sentence, and what runs goes on running.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { aService } from '../../support/builders.ts';
import { type Container, makeNode, type TestNode } from '../../support/node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

const cleaning: (() => void | Promise<void>)[] = [];
let node: TestNode;
let running: Container[];
let good: DesiredService[];

beforeAll(async () => {
  node = makeNode({ project: 'bad', onTestFinished: (clean) => cleaning.push(clean) });
  await node.deploy([aWebDeploy(), aWorkerDeploy()]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  running = await node.containers();
  good = [...node.desired().services];
  expect(running).toHaveLength(3);
});
afterAll(async () => {
  for (const clean of cleaning.reverse()) await clean();
});

function aDocument(overrides: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    version: 3,
    nodeId: node.nodeId,
    updatedAt: new Date().toISOString(),
    services: good,
    ...overrides,
  });
}

describe('a desired state that cannot be read', () => {
  it.each<[string, () => string, string]>([
    ['cut off', () => aDocument({}).slice(0, -40), 'it is cut off'],
    ['empty', () => '', 'it is empty'],
    ['blank', () => ' \n\t ', 'it is empty'],
    [
      'filled with NULs',
      () => '\0'.repeat(4096),
      'it holds NUL bytes, as a file does that was cut off by a crash',
    ],
    ['no JSON', () => 'services: []', 'it is no JSON'],
    ['a list', () => '[]', 'it is no JSON object'],
    ['null', () => 'null', 'it is no JSON object'],
    [
      'of an older version',
      () => aDocument({ version: 2 }),
      'it is of version 2, and only version 3 is understood',
    ],
    [
      'of a newer version',
      () => aDocument({ version: 4 }),
      'it is of version 4, and only version 3 is understood',
    ],
    [
      'of a version in words',
      () => aDocument({ version: '3' }),
      'it is of version "3", and only version 3 is understood',
    ],
    ['of another node', () => aDocument({ nodeId: 'web-7' }), 'it is for node web-7, and this is node'],
    ['without a version', () => '{"services":[]}', 'it names no version, and only version 3 is understood'],
    ['with services that are a map', () => aDocument({ services: {} }), 'services'],
    ['without services', () => aDocument({ services: undefined }), 'services'],
    ['of 50 MB', () => aDocument({ padding: 'x'.repeat(50_000_000) }), 'it is larger than 16 MiB'],
    ['nested a million deep', () => '['.repeat(1_000_000), 'it is nested more than 32 levels deep'],
    [
      'nested within a service',
      () => aDocument({ extra: JSON.parse('[['.repeat(50) + ']]'.repeat(50)) }),
      'it is nested',
    ],
  ])('as it is %s, is refused with 65 in one sentence, and nothing stops', async (_name, content, cause) => {
    node.writeDesired(content());
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.stderr]).toEqual([
      65,
      expect.stringMatching(/^reeve: cannot read "desired\.json": [^\n]{1,300}\n$/),
    ]);
    expect(end.stderr).toContain(cause);
    expect(end.json()).toMatchObject({ command: 'reconcile', outcome: 'failed', error: { code: 'input' } });
    // Whoever looks at the store sees why, and the services as they were.
    expect(node.status().caddy.error).toContain(cause);
    expect(node.status().services.map(({ state }) => state)).toEqual(['running', 'running']);
    expect(await node.containers()).toEqual(running);
  });

  it('is got over as soon as it is whole again', async () => {
    node.writeDesired(good);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([0, []]);
    expect(await node.containers()).toEqual(running);
    expect(node.status().caddy.error).toBe(null);
  });
});

describe('a service that cannot be', () => {
  const web = (overrides: object): DesiredService => ({ ...(good[0] as DesiredService), ...overrides });
  const other = (overrides: object): DesiredService => ({ ...aService({ project: 'bad' }), ...overrides });

  it.each<[string, () => unknown[], string, string]>([
    ['its name has a separator', () => [other({ service: '../etc' })], 'bad/../etc', 'service'],
    ['its name has capitals', () => [other({ service: 'Other' })], 'bad/Other', 'service'],
    ['its name is too long', () => [other({ service: 'x'.repeat(41) })], `bad/${'x'.repeat(41)}`, 'service'],
    ['its project has a slash', () => [other({ project: 'a/b' })], 'a/b/web', 'project'],
    ['its image is empty', () => [other({ service: 'api', image: '' })], 'bad/api', 'image'],
    ['its memory is text', () => [other({ service: 'api', memory: '64' })], 'bad/api', 'memory'],
    ['it wants no replicas', () => [other({ service: 'api', replicas: 0 })], 'bad/api', 'replicas'],
    ['a variable is a number', () => [other({ service: 'api', env: { PORT: 80 } })], 'bad/api', 'env.PORT'],
    [
      'its port is none',
      () => [other({ service: 'api', ingress: { domain: 'a.example', port: 0, edge: 'e' } })],
      'bad/api',
      'ingress.port',
    ],
    [
      'its volume leads elsewhere',
      () => [other({ service: 'api', volumes: [{ name: '../x', path: '/x' }] })],
      'bad/api',
      'volumes',
    ],
    [
      'its volume is nowhere',
      () => [other({ service: 'api', volumes: [{ name: 'x', path: 'x' }] })],
      'bad/api',
      'volumes',
    ],
  ])('as %s, is that service’s error; the others are looked after', async (_name, extra, key, field) => {
    node.writeDesired(JSON.stringify({ ...JSON.parse(aDocument({})), services: [...good, ...extra()] }));
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles.map((trouble) => trouble.key), end.json().actions]).toEqual([
      1,
      [key],
      [],
    ]);
    expect(end.json().troubles[0]?.message).toMatch(/^[^\n]{1,300}$/);
    expect(end.json().troubles[0]?.message).toContain(field);
    expect(await node.containers()).toEqual(running);
  });

  it('as it is no object, leaves every service alone that could be meant', async () => {
    node.writeDesired(JSON.stringify({ ...JSON.parse(aDocument({})), services: [good[0], 'worker', null] }));
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([1, []]);
    expect(await node.containers()).toEqual(running);
  });

  it('as it is there twice, is neither, and what runs of it goes on (R37)', async () => {
    node.writeDesired([...good, web({ image: 'reeve-demo/web:v2' })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [{ key: 'bad/web', message: '"bad/web" is there more than once' }],
    ]);
    expect(await node.containers()).toEqual(running);
    expect(node.shard().backends).toHaveLength(2);
    expect(node.status().services.map(({ service, state }) => `${service} ${state}`)).toEqual([
      'web error',
      'worker running',
    ]);
  });

  it('as a field is unknown, is as good as without it, with one warning', async () => {
    node.writeDesired(
      JSON.stringify({ ...JSON.parse(aDocument({})), services: [{ ...good[0], colour: 'red' }, good[1]] }),
    );
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([0, []]);
    expect(end.stderr.trim().split('\n')).toEqual([
      'warning: fields in "desired.json" that this version does not know are ignored: services[].colour',
    ]);
  });
});
