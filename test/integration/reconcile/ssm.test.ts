// A node whose secrets are in the parameter store, as whole runs against a real engine.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWorkerDeploy } from '../../support/services.ts';
import { type SsmServer, startSsm } from '../../support/ssm-server.ts';

let ssm: SsmServer;
beforeAll(async () => {
  ssm = await startSsm();
});
afterAll(() => ssm.stop());
beforeEach(() => {
  ssm.parameters.clear();
  ssm.calls.length = 0;
});

function makeSsmNode(project: string): TestNode {
  return makeNode({
    project,
    cluster: { secrets: 'ssm', region: 'us-east-1' },
    env: {
      AWS_ENDPOINT_URL_SSM: ssm.endpoint,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'key-of-the-test',
    },
  });
}

const services = (project: string, overrides: object = {}): object[] =>
  ['one', 'two', 'three'].map((service) =>
    aWorkerDeploy({ service, secretRefs: refs(project), replicas: 2, ...overrides }),
  );
const refs = (project: string): object[] => [
  { name: 'API_KEY', ssm: `/launch-pad/default/${project}/all/API_KEY` },
  { name: 'TOKEN', ssm: `/launch-pad/default/${project}/all/TOKEN` },
];

it('asks once for six containers of three services, and tells and keeps nothing of the values (L139)', async () => {
  const node = makeSsmNode('params');
  ssm.parameters.set('/launch-pad/default/params/all/API_KEY', 'geheim=1 "$x"\n');
  ssm.parameters.set('/launch-pad/default/params/all/TOKEN', 'geheim-2');
  await node.deploy(services('params', { env: { PLAIN: 'plain' } }));
  const end = await node.reeve('reconcile', '--debug');
  expect([end.status, ssm.calls.length]).toEqual([0, 1]);
  const containers = await node.containers();
  expect(containers).toHaveLength(6);
  for (const { env } of containers) {
    expect(env).toEqual(expect.arrayContaining(['PLAIN=plain', 'API_KEY=geheim=1 "$x"\n', 'TOKEN=geheim-2']));
  }
  const files = globSync('**/*', { cwd: node.root, withFileTypes: true }).filter((entry) => entry.isFile());
  const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
  expect(texts.length).toBeGreaterThan(5);
  for (const text of [...texts, end.stdout, end.stderr]) expect(text).not.toMatch(/geheim|key-of-the-test/);
  // Nothing to do is nothing to ask.
  expect((await node.reeve('reconcile')).status).toBe(0);
  expect(ssm.calls).toHaveLength(1);
});

it('names a missing parameter with its service, and keeps what runs', async () => {
  const node = makeSsmNode('lacking');
  await node.deploy(services('lacking', { secretRefs: [] }));
  expect((await node.reeve('reconcile')).status).toBe(0);
  const before = await node.containers();
  ssm.parameters.set('/launch-pad/default/lacking/all/API_KEY', 'geheim');
  await node.deploy(services('lacking').slice(0, 1), '--service', 'lacking/one');
  const end = await node.reeve('reconcile', '--json');
  const path = '/launch-pad/default/lacking/all/TOKEN';
  expect([end.status, end.json().troubles]).toMatchObject([
    1,
    [
      {
        key: 'lacking/one',
        message: `cannot resolve secrets: TOKEN ("${path}") is missing: there is no parameter ${path} in us-east-1`,
      },
    ],
  ]);
  expect(await node.containers()).toEqual(before);
});

it('asks again for a restart, also within the run that has asked before', { timeout: 180_000 }, async () => {
  const node = makeSsmNode('again');
  const [one] = services('again', { rollout: { stopGrace: '5s' } });
  for (const key of ['API_KEY', 'TOKEN']) ssm.parameters.set(`/launch-pad/default/again/all/${key}`, 'old');
  await node.deploy([one as object]);
  const watch = node.start(['reconcile', '--watch']);
  await expect.poll(async () => (await node.containers()).length, { timeout: 60_000 }).toBe(2);
  ssm.parameters.set('/launch-pad/default/again/all/TOKEN', 'new');
  expect((await node.reeve('restart', 'again/one', '--yes')).status).toBe(0);
  const tokens = async (): Promise<string[]> =>
    (await node.containers()).map(({ env }) => env.find((entry) => entry.startsWith('TOKEN=')) ?? '');
  await expect.poll(tokens, { timeout: 60_000 }).toEqual(['TOKEN=new', 'TOKEN=new']);
  watch.child.kill('SIGTERM');
  await watch.end;
});
