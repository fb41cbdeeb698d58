// scripts/deploy-service.sh with a real engine and compose: the same as a deploy by hand, but that all is made anew.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCheckout, readLines } from '../../support/checkout.ts';
import { docker, engineSocket } from '../../support/engine.ts';

const web = { image: 'reeve-demo/web:v1' };
const stable = [
  'com.docker.compose.project',
  'com.docker.compose.service',
  'com.docker.compose.project.working_dir',
];

describe('a redeploy', () => {
  it('D13 D14 D26 has the project, the names, the mounts and the labels of a deploy by hand, and new containers', async () => {
    const checkout = makeCheckout(['hand-web']);
    checkout.writeCompose('hand-web', { web: { ...web, volumes: ['./data:/data', '../shared:/shared:ro'] } });
    checkout.byHand('hand-web', ['up', '-d']);
    const before = checkout.containers('hand-web');

    const end = await checkout.deploy(['--force-recreate', 'hand-web']);

    expect(end).toMatchObject({ status: 0, stdout: expect.stringMatching(/hand-web runs\n$/) });
    const after = checkout.containers('hand-web');
    const shape = (list: typeof after) =>
      list.map(({ name, binds, labels, state }) => ({
        ...{ name, state, binds: [...binds].sort() },
        labels: stable.map((label) => labels[label]),
      }));
    expect(shape(after)).toStrictEqual(shape(before));
    expect(after[0]?.binds).toContain(`${join(checkout.dir, 'services/hand-web/data')}:/data`);
    expect(after.map(({ id }) => id)).not.toStrictEqual(before.map(({ id }) => id));
  });

  it('D27 makes an unhealthy container anew although its configuration is the same, which a plain up does not', async () => {
    const checkout = makeCheckout(['sick-web']);
    const healthcheck = {
      test: ['CMD', '/bin/sh', '-c', 'test ! -e /tmp/sick'],
      ...{ interval: '1s', timeout: '5s', retries: 1 },
    };
    checkout.writeCompose('sick-web', { web: { ...web, healthcheck } });
    checkout.byHand('sick-web', ['up', '-d']);
    const [first] = checkout.containers('sick-web');
    docker(engineSocket(), ['exec', first?.id ?? '', '/bin/sh', '-c', 'mkdir -p /tmp && touch /tmp/sick']);
    await expect
      .poll(() => checkout.containers('sick-web')[0]?.health, { timeout: 30_000 })
      .toBe('unhealthy');
    checkout.byHand('sick-web', ['up', '-d']);
    expect(checkout.containers('sick-web')[0]?.id).toBe(first?.id);

    const end = await checkout.deploy(['sick-web', '--force-recreate']);

    expect(end.status).toBe(0);
    const [second, ...more] = checkout.containers('sick-web');
    expect(second).toMatchObject({ state: 'running', health: 'healthy' });
    expect(second?.id).not.toBe(first?.id);
    expect(more).toStrictEqual([]);
  });

  it("D24 D25 D26 R42 names the project, recreates, and neither builds nor removes another stack's containers, whatever the environment says", async () => {
    const checkout = makeCheckout(['two-stacks']);
    checkout.writeCompose('two-stacks', { web });
    checkout.write('checkout/services/two-stacks/.env', 'COMPOSE_REMOVE_ORPHANS=1\n');
    checkout.write(
      'checkout/services/two-stacks/other.yml',
      JSON.stringify({ version: '2.4', services: { other: web } }),
    );
    checkout.byHand('two-stacks', ['-f', 'other.yml', 'up', '-d']);
    const [other] = checkout.containers('two-stacks');
    const log = join(checkout.root, 'compose.log');
    checkout.writeProgram(
      'docker-compose',
      `echo "$@" >>"${log}"; echo "env $COMPOSE_REMOVE_ORPHANS" >>"${log}"; exec "$REAL" "$@"`,
    );

    const end = await checkout.deploy(['--force-recreate', 'two-stacks'], {
      COMPOSE_REMOVE_ORPHANS: '1',
      COMPOSE_PROJECT_NAME: 'somewhere',
      COMPOSE_FILE: 'other.yml',
    });

    expect(end.status).toBe(0);
    const calls = readLines(log);
    expect(calls.filter((line) => line.includes(' up '))).toStrictEqual([
      '-f docker-compose.yml -p two-stacks up -d --force-recreate --no-build',
    ]);
    expect(calls.join('\n')).not.toMatch(/--build|remove-orphans|pull|down|\brm\b/);
    expect(calls.filter((line) => line.startsWith('env'))).not.toContain('env 1');
    expect(checkout.containers('two-stacks')).toMatchObject([
      { id: other?.id, state: 'running' },
      { name: 'two-stacks_web_1', state: 'running' },
    ]);
  });

  it('D21 D22 D23 asks git for nothing and leaves the checkout as it is', async () => {
    const checkout = makeCheckout(['gitless']);
    checkout.writeCompose('gitless', { web });
    const mark = join(checkout.root, 'git-was-called');
    checkout.writeProgram('git', `touch "${mark}"; exec "$REAL" "$@"`);
    expect((await checkout.deploy(['gitless'])).status).toBe(0);
    expect(existsSync(mark)).toBe(false);
  });

  it("lays the node's and the machine's overrides over the service's file, in this order", async () => {
    const checkout = makeCheckout(['layered']);
    const env = (values: object) =>
      JSON.stringify({ version: '2.4', services: { web: { environment: values } } });
    checkout.writeCompose('layered', {
      web: { ...web, environment: { A: 'service', B: 'service', C: 'service', D: '$FROM_ENV' } },
    });
    checkout.write('checkout/services/layered/docker-compose.override.yml', env({ A: 'by hand only' }));
    checkout.write('checkout/services/layered/.env', 'FROM_ENV=service\n');
    checkout.write(
      'checkout/hosts/web-1/runtime/layered/docker-compose.override.yml',
      env({ B: 'node', C: 'node' }),
    );
    checkout.write('checkout/hosts/web-2/runtime/layered/docker-compose.override.yml', env({ A: 'web-2' }));
    checkout.write('config/layered/docker-compose.override.yml', env({ C: 'machine' }));
    checkout.write('config/layered/.env', 'FROM_ENV=machine\n');
    expect((await checkout.deploy(['layered'])).status).toBe(0);
    const [container] = checkout.containers('layered');
    expect(container?.env).toEqual(expect.arrayContaining(['A=service', 'B=node', 'C=machine', 'D=machine']));
  });

  it('D13 takes the project name that compose itself would take from the .env file', async () => {
    const checkout = makeCheckout(['own-name']);
    checkout.writeCompose('renamed', { web });
    checkout.write('checkout/services/renamed/.env', '# ours\nexport COMPOSE_PROJECT_NAME="Own-Name"\n');
    checkout.byHand('renamed', ['up', '-d']);
    expect((await checkout.deploy(['renamed'])).status).toBe(0);
    expect(checkout.containers('own-name')).toMatchObject([{ name: 'own-name_web_1', state: 'running' }]);
  });

  it('takes the containers of a job that has ended well for well', async () => {
    const checkout = makeCheckout(['with-job']);
    checkout.writeCompose('with-job', { web, job: { image: 'reeve-demo/job:v1' } });
    expect((await checkout.deploy(['with-job'])).status).toBe(0);
    expect(checkout.containers('with-job')).toMatchObject([{ state: 'exited' }, { state: 'running' }]);
  });
});
