// An image in a private registry of AWS, pulled by a real engine by the registry's name, over TLS, with a token of the role.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type EcrService, type Front, startEcr, startFront } from '../../support/ecr.ts';
import { docker, engineDirectory, engineSocket, startEngine, stopEngine } from '../../support/engine.ts';
import { makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { type Registry, startRegistry } from '../../support/registry.ts';
import { aWorkerDeploy } from '../../support/services.ts';

// Another region than the node's: the registry's name decides.
const region = 'eu-north-1';
const host = `123456789012.dkr.ecr.${region}.amazonaws.com`;
const directory = mkdtempSync(join(tmpdir(), 'reeve-ecr-'));
const own = engineDirectory('ecr');
const registries: Registry[] = [];
let ecr: EcrService;
let front: Front;
let socket: string;

const register = async (password?: string): Promise<Registry> => {
  const login = password === undefined ? {} : { login: { user: 'AWS', password } };
  const registry = await startRegistry({ root: join(directory, 'images'), ...login });
  registries.push(registry);
  return registry;
};

beforeAll(async () => {
  const open = await register();
  for (const name of ['one', 'two']) {
    const reference = `${open.host}/team/${name}:v1`;
    docker(engineSocket(), ['tag', 'reeve-demo/worker:v1', reference]);
    docker(engineSocket(), ['push', '-q', reference]);
    docker(engineSocket(), ['rmi', reference]);
  }
  ecr = await startEcr(region, 'first-token');
  front = await startFront(host, directory, (await register('first-token')).host);
  socket = startEngine(own, front.env);
});
afterAll(async () => {
  stopEngine(own);
  await front?.stop();
  await ecr?.stop();
  for (const registry of registries) await registry.stop();
  rmSync(directory, { recursive: true });
});

function makeEcrNode(): TestNode {
  return makeNode({
    socket,
    env: {
      AWS_ENDPOINT_URL_ECR: ecr.endpoint,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'key-of-the-test',
    },
  });
}

const image = (name: string): string => `${host}/team/${name}:v1`;
const images = (): string[] =>
  docker(socket, ['images', '--format', '{{.Repository}}:{{.Tag}}']).trim().split('\n').sort();

async function reconcile(node: TestNode): Promise<ReeveEnd> {
  const end = await node.reeve('reconcile', '--debug');
  expect(`${end.stdout}${end.stderr}`).not.toMatch(/(first|second|third)-token|key-of-the-test/);
  return end;
}

it('is pulled with a token that is asked for once and kept for the next run; a refusal gets a new one (L25)', {
  timeout: 240_000,
}, async () => {
  const node = makeEcrNode();
  await node.deploy([aWorkerDeploy({ image: image('one') })]);
  expect(await reconcile(node)).toMatchObject({ status: 0 });
  expect([images(), ecr.calls]).toEqual([
    [image('one')],
    [{ operation: 'GetAuthorizationToken', input: {} }],
  ]);
  const file = join(node.root, 'run/ecr.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);

  // The next run has the token of the first.
  await node.deploy([aWorkerDeploy({ image: image('two') })]);
  expect(await reconcile(node)).toMatchObject({ status: 0 });
  expect([images(), ecr.calls.length]).toEqual([[image('one'), image('two')], 1]);

  const age = (hours: number): void => {
    const kept = JSON.parse(readFileSync(file, 'utf8'));
    kept.tokens[region].obtainedAt = new Date(Date.now() - hours * 3_600_000).toISOString();
    writeFileSync(file, JSON.stringify(kept));
  };

  // That token is good no more.
  age(1);
  front.target = (await register('second-token')).host;
  ecr.password = 'second-token';
  for (const container of docker(socket, ['ps', '-aq']).trim().split('\n'))
    docker(socket, ['rm', '-f', container]);
  docker(socket, ['rmi', image('one'), image('two')]);
  expect(await reconcile(node)).toMatchObject({ status: 0 });
  expect([images(), ecr.calls.length]).toEqual([[image('two')], 2]);

  // Older than six hours: another one is asked for. Where there is none to be had, the old one does, as long as it is good.
  age(5.9);
  await node.deploy([aWorkerDeploy({ image: image('one') })]);
  expect([(await reconcile(node)).status, ecr.calls.length]).toEqual([0, 2]);
  age(6.1);
  const denied = { kind: 'refuse', status: 400, type: 'AccessDeniedException', message: 'not you' } as const;
  ecr.faults.push(denied);
  await node.deploy([aWorkerDeploy({ image: image('two') })]);
  expect([(await reconcile(node)).status, ecr.faults]).toEqual([0, []]);
  age(6.1);
  await node.deploy([aWorkerDeploy({ image: image('one') })]);
  expect([(await reconcile(node)).status, ecr.calls.length]).toEqual([0, 4]);
  expect(
    JSON.parse(readFileSync(file, 'utf8')).tokens[region].obtainedAt >
      new Date(Date.now() - 60_000).toISOString(),
  ).toBe(true);

  // A damaged file is none.
  writeFileSync(file, '{"version":1,"tok');
  await node.deploy([aWorkerDeploy({ image: image('two') })]);
  expect([(await reconcile(node)).status, ecr.calls.length]).toEqual([0, 5]);

  // The registry refuses what the service hands out: tried once again, and told whose credentials these were.
  ecr.password = 'third-token';
  writeFileSync(file, '');
  for (const container of docker(socket, ['ps', '-aq']).trim().split('\n'))
    docker(socket, ['rm', '-f', container]);
  docker(socket, ['rmi', image('one'), image('two')]);
  const refused = await node.reeve('reconcile', '--json');
  expect([refused.status, refused.json().troubles[0]?.message]).toEqual([
    1,
    expect.stringMatching(
      /^cannot pull image ".*": .*; the credentials of this machine's role were refused$/,
    ),
  ]);
  expect([ecr.calls.length, `${refused.stdout}${refused.stderr}`]).toEqual([
    6,
    expect.not.stringContaining('third-token'),
  ]);
});

it('that is not here cannot be had without the right to a token, and the error says which', async () => {
  const node = makeEcrNode();
  await node.deploy([aWorkerDeploy({ image: image('absent') })]);
  // More than an activation's tries.
  ecr.faults.push(
    ...Array.from({ length: 9 }, () => ({
      ...{ kind: 'refuse' as const, status: 400 },
      ...{ type: 'AccessDeniedException', message: 'User is not authorized' },
    })),
  );
  const end = await node.reeve('reconcile', '--json');
  ecr.faults.length = 0;
  expect([end.status, end.json().troubles[0]?.message]).toEqual([
    1,
    `cannot get a token for the registries of ${region}: 400 AccessDeniedException: User is not authorized`,
  ]);
});

it('needs no token where the credentials are written down', async () => {
  const node = makeEcrNode();
  const before = ecr.calls.length;
  const auth = Buffer.from('AWS:second-token').toString('base64');
  const file = join(node.root, 'etc/docker/config.json');
  mkdirSync(join(node.root, 'etc/docker'));
  writeFileSync(file, JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  await node.deploy([aWorkerDeploy({ image: image('one') })]);
  expect([(await reconcile(node)).status, ecr.calls.length]).toEqual([0, before]);
  expect(images()).toContain(image('one'));
});
