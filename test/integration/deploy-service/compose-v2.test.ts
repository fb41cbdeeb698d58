// scripts/deploy-service.sh with the second docker compose, which is a plugin of the client's: what the first one's tests show, and
// what is different there, such as names with dashes and a project's name that its `config` tells.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Checkout, makeCheckout } from '../../support/checkout.ts';
import { docker, engineSocket } from '../../support/engine.ts';

const web = { image: 'reeve-demo/web:v1' };
const stable = [
  'com.docker.compose.project',
  'com.docker.compose.service',
  'com.docker.compose.project.working_dir',
];

const shape = (containers: ReturnType<Checkout['containers']>) =>
  containers.map(({ name, binds, labels, state }) => ({
    ...{ name, state, binds: [...binds].sort() },
    labels: stable.map((label) => labels[label]),
  }));

describe('a redeploy by docker compose v2', () => {
  it('D13 D14 D26 has the project, the names, the mounts and the labels of a deploy by hand, and new containers', async () => {
    const checkout = makeCheckout(['new-web'], 'v2');
    checkout.writeCompose('new-web', { web: { ...web, volumes: ['./data:/data', '../shared:/shared:ro'] } });
    checkout.byHand('new-web', ['up', '-d']);
    const before = checkout.containers('new-web');
    expect(before).toMatchObject([{ name: 'new-web-web-1', state: 'running' }]);

    const end = await checkout.deploy(['--force-recreate', 'new-web']);

    expect(end).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/project new-web, by compose v2\n(.*\n)*deploy-service: new-web runs\n$/),
    });
    const after = checkout.containers('new-web');
    expect(shape(after)).toStrictEqual(shape(before));
    expect(after[0]?.binds).toContain(`${join(checkout.dir, 'services/new-web/data')}:/data`);
    expect(after[0]?.id).not.toBe(before[0]?.id);
  });

  it('takes over what the first docker-compose has started', async () => {
    const [old, checkout] = [makeCheckout(['moved']), makeCheckout(['moved'], 'v2')];
    for (const each of [old, checkout]) each.writeCompose('moved', { web });
    expect((await old.deploy(['moved'])).status).toBe(0);
    expect(checkout.containers('moved')).toMatchObject([{ name: 'moved_web_1' }]);
    expect((await checkout.deploy(['moved'])).status).toBe(0);
    expect(checkout.containers('moved')).toMatchObject([{ name: 'moved-web-1', state: 'running' }]);
  });

  it.each([
    ['the name in its file', { name: 'v2-file' }, '', 'v2-file'],
    ['the number in its file', { name: '2026' }, '', '2026'],
    ['COMPOSE_PROJECT_NAME of its .env', {}, 'COMPOSE_PROJECT_NAME=v2-env\n', 'v2-env'],
    ['its directory', {}, '', 'v2-directory'],
  ])('D13 has the project that %s says, as a deploy by hand', async (_, more, env, project) => {
    const checkout = makeCheckout([project], 'v2');
    checkout.write(
      'checkout/services/v2-directory/docker-compose.yml',
      JSON.stringify({ ...more, services: { web } }),
    );
    if (env !== '') checkout.write('checkout/services/v2-directory/.env', env);
    checkout.byHand('v2-directory', ['up', '-d']);
    const [before] = checkout.containers(project);
    expect((await checkout.deploy(['v2-directory'])).status).toBe(0);
    expect(checkout.containers(project)).toMatchObject([{ name: `${project}-web-1`, state: 'running' }]);
    expect(checkout.containers(project)[0]?.id).not.toBe(before?.id);
  });

  it("lays the node's and the machine's overrides over the service's file, in this order", async () => {
    const checkout = makeCheckout(['v2-layered'], 'v2');
    const env = (values: object) => JSON.stringify({ services: { web: { environment: values } } });
    checkout.writeCompose('v2-layered', {
      web: { ...web, environment: { A: 'service', B: 'service', C: 'service', D: '$FROM_ENV' } },
    });
    checkout.write('checkout/services/v2-layered/compose.override.yml', env({ A: 'by hand only' }));
    checkout.write('checkout/services/v2-layered/docker-compose.override.yml', env({ A: 'by hand only' }));
    checkout.write('checkout/services/v2-layered/.env', 'FROM_ENV=service\n');
    const runtime = 'checkout/hosts/web-1/runtime/v2-layered/docker-compose.override.yml';
    checkout.write(runtime, env({ B: 'node', C: 'node' }));
    checkout.write('config/v2-layered/docker-compose.override.yml', env({ C: 'machine' }));
    checkout.write('config/v2-layered/.env', 'FROM_ENV=hunter2\n');
    const end = await checkout.deploy(['v2-layered']);
    expect(end.status).toBe(0);
    const [container] = checkout.containers('v2-layered');
    expect(container?.env).toEqual(expect.arrayContaining(['A=service', 'B=node', 'C=machine', 'D=hunter2']));
    expect(end.stdout + end.stderr).not.toContain('hunter2');
  });

  it("D24 D25 D26 R42 neither builds nor removes another stack's containers, whatever the environment says", async () => {
    const checkout = makeCheckout(['v2-stacks'], 'v2');
    checkout.writeCompose('v2-stacks', { web });
    checkout.write('checkout/services/v2-stacks/.env', 'COMPOSE_REMOVE_ORPHANS=1\nCOMPOSE_FILE=other.yml\n');
    checkout.write('checkout/services/v2-stacks/other.yml', JSON.stringify({ services: { other: web } }));
    checkout.byHand('v2-stacks', ['-f', 'other.yml', 'up', '-d']);
    const [other] = checkout.containers('v2-stacks');
    const end = await checkout.deploy(['v2-stacks'], {
      ...{ COMPOSE_REMOVE_ORPHANS: '1', COMPOSE_PROJECT_NAME: 'somewhere', COMPOSE_FILE: 'other.yml' },
      ...{ COMPOSE_PROFILES: 'x', COMPOSE_ENV_FILES: '/none' },
    });
    expect(end.status).toBe(0);
    expect(checkout.containers('v2-stacks')).toMatchObject([
      { id: other?.id, state: 'running' },
      { name: 'v2-stacks-web-1', state: 'running' },
    ]);
  });

  it('D27 makes an unhealthy container anew, and waits until the new one is healthy', async () => {
    const checkout = makeCheckout(['v2-sick'], 'v2');
    const healthcheck = {
      test: ['CMD', '/bin/sh', '-c', 'test ! -e /tmp/sick'],
      ...{ interval: '1s', timeout: '5s', retries: 1 },
    };
    checkout.writeCompose('v2-sick', { web: { ...web, healthcheck }, job: { image: 'reeve-demo/job:v1' } });
    checkout.byHand('v2-sick', ['up', '-d']);
    const first = checkout.containers('v2-sick').find(({ name }) => name === 'v2-sick-web-1');
    docker(engineSocket(), ['exec', first?.id ?? '', '/bin/sh', '-c', 'mkdir -p /tmp && touch /tmp/sick']);
    const health = () => checkout.containers('v2-sick').find(({ id }) => id === first?.id)?.health;
    await expect.poll(health, { timeout: 30_000 }).toBe('unhealthy');
    expect((await checkout.deploy(['v2-sick'])).status).toBe(0);
    const after = checkout.containers('v2-sick');
    expect(after).toMatchObject([{ state: 'exited' }, { state: 'running', health: 'healthy' }]);
    expect(after.map(({ id }) => id)).not.toContain(first?.id);
  });
});

describe('what fails by docker compose v2', () => {
  it.each([
    ['is no YAML', 'services: ['],
    ['names no image', JSON.stringify({ services: { web: { imge: 'x' } } })],
    ['names no service', JSON.stringify({ services: {} })],
    ['wants a variable', 'services: { web: { image: "$' + '{NONE:?is not there}" } }'],
  ])('2: a file that %s is refused, and nothing changes', async (_, text) => {
    const checkout = makeCheckout(['v2-gate'], 'v2');
    checkout.write('checkout/services/v2-gate/docker-compose.yml', text);
    expect((await checkout.deploy(['v2-gate'])).status).toBe(2);
    expect(checkout.containers('v2-gate')).toStrictEqual([]);
  });

  it.each([
    ['', {}],
    [', although it says that it is to be built each time', { pull_policy: 'build' }],
  ])('3: D24 an image that would have to be built is not built%s', async (_, more) => {
    const checkout = makeCheckout(['v2-unbuilt'], 'v2');
    const service = { build: '.', image: 'reeve-demo/never-built:v2', ...more };
    checkout.writeCompose('v2-unbuilt', { web: service });
    checkout.write('checkout/services/v2-unbuilt/Dockerfile', 'FROM reeve-demo/box:v1\n');
    expect((await checkout.deploy(['v2-unbuilt'])).status).toBe(3);
    expect(checkout.containers('v2-unbuilt')).toStrictEqual([]);
    expect(docker(engineSocket(), ['images', '-q', 'reeve-demo/never-built'])).toBe('');
  });

  it('4: D27 a container that ends with another code than 0 is told', async () => {
    const checkout = makeCheckout(['v2-broken'], 'v2');
    checkout.writeCompose('v2-broken', { web: { image: 'reeve-demo/job:v1', environment: { CODE: '3' } } });
    expect(await checkout.deploy(['v2-broken'], { DEPLOY_VERIFY_SECS: '6' })).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('has ended with 3'),
    });
  });

  it('D21 leaves the checkout as it is', async () => {
    const checkout = makeCheckout(['v2-tidy'], 'v2');
    checkout.writeCompose('v2-tidy', { web });
    const list = () => readdirSync(checkout.dir, { recursive: true }).sort();
    const before = list();
    expect((await checkout.deploy(['v2-tidy'])).status).toBe(0);
    expect(list()).toStrictEqual(before);
  });
});
