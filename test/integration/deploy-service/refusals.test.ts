// scripts/deploy-service.sh where something is missing, wrong or does not come up: its exit codes, and that nothing runs before.
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Checkout, makeCheckout } from '../../support/checkout.ts';

const web = { image: 'reeve-demo/web:v1' };

/** With a compose that must not be reached. */
function guarded(checkout: Checkout): () => boolean {
  const mark = join(checkout.root, 'compose-was-called');
  checkout.writeProgram('docker-compose', `touch "${mark}"; exec "$REAL" "$@"`);
  return () => existsSync(mark);
}

describe('1, preflight', () => {
  it.each([
    ['no name', []],
    ['an empty name', ['']],
    ['two names', ['web', 'other']],
    ['a path', ['../web']],
    ['a slash', ['web/x']],
    ['dots', ['web.app']],
    ['a blank', ['web app']],
    ['a leading dash', ['--', '-web']],
    ['a trailing dash', ['web-']],
    ['upper case', ['Web']],
    ['a line break', ['web\n']],
    ['a variable', ['$HOME']],
    ['a name that is too long', ['a'.repeat(64)]],
    ['--build', ['--build', 'web']],
    ['--remove-orphans', ['--remove-orphans', 'web']],
    ['a flag without its value', ['web', '--node']],
    ['a service without a file', ['none']],
    ['a node that is a path', ['--node', '../x', 'web']],
  ])('D24 D25 D30 D33 refuses %s before anything runs', async (_, words) => {
    const checkout = makeCheckout([]);
    const wasCalled = guarded(checkout);
    checkout.writeCompose('web', { web });
    const end = await checkout.deploy(words);
    expect([end.status, end.stderr]).toStrictEqual([1, expect.stringMatching(/^deploy-service: .+\n$/s)]);
    expect(wasCalled()).toBe(false);
  });

  it('refuses where the engine does not answer, or there is no compose', async () => {
    const checkout = makeCheckout([]);
    const wasCalled = guarded(checkout);
    checkout.writeCompose('web', { web });
    const silent = await checkout.deploy(['web'], { DOCKER_HOST: `unix://${checkout.root}/none.sock` });
    expect(silent).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^deploy-service: the engine does not answer: .+\n$/),
    });
    expect(wasCalled()).toBe(false);
  });

  it('D32 refuses a compose file that is a directory', async () => {
    const checkout = makeCheckout([]);
    checkout.write('checkout/services/web/docker-compose.yml/x', '');
    expect(await checkout.deploy(['web'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('there is no file'),
    });
  });
});

describe('2, gate', () => {
  it.each([
    ['is no YAML', 'services: ['],
    ['names no image', JSON.stringify({ version: '2.4', services: { web: { imge: 'x' } } })],
    ['names no service', JSON.stringify({ version: '2.4', services: {} })],
  ])('refuses a file that %s, and changes nothing', async (_, text) => {
    const checkout = makeCheckout(['gate']);
    checkout.write('checkout/services/gate/docker-compose.yml', text);
    expect((await checkout.deploy(['gate'])).status).toBe(2);
    expect(checkout.containers('gate')).toStrictEqual([]);
  });

  it('prints no secret of the files', async () => {
    const checkout = makeCheckout(['secretive']);
    checkout.writeCompose('secretive', { web: { ...web, environment: { PASSWORD: '$PASSWORD' } } });
    checkout.write('config/secretive/.env', 'PASSWORD=hunter2\n');
    const end = await checkout.deploy(['secretive']);
    expect(end.status).toBe(0);
    expect(end.stdout + end.stderr).not.toContain('hunter2');
  });
});

describe('3, execute', () => {
  it('D24 fails where an image is missing that would have to be built, and builds nothing', async () => {
    const checkout = makeCheckout(['unbuilt']);
    checkout.writeCompose('unbuilt', { web: { build: '.', image: 'reeve-demo/never-built:v1' } });
    checkout.write('checkout/services/unbuilt/Dockerfile', 'FROM reeve-demo/box:v1\n');
    const end = await checkout.deploy(['unbuilt']);
    expect(end).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('compose could not bring up unbuilt'),
    });
    expect(checkout.containers('unbuilt')).toStrictEqual([]);
  });
});

describe('4, verify', () => {
  const cases: [string, object, RegExp][] = [
    [
      'ends with another code than 0',
      { image: 'reeve-demo/job:v1', environment: { CODE: '3' } },
      /has ended with 3/,
    ],
    ['crashes again and again', { image: 'reeve-demo/web:crash', restart: 'always' }, /./],
    ['does not stay', { image: 'reeve-demo/job:v1' }, /none of its containers runs/],
    [
      'is not healthy',
      { ...web, healthcheck: { test: ['CMD', '/bin/false'], interval: '1s', timeout: '2s', retries: 1 } },
      /is unhealthy|is starting/,
    ],
  ];
  it.each(cases)('D27 tells a container that %s', async (_, service, words) => {
    const checkout = makeCheckout(['broken']);
    checkout.writeCompose('broken', { web: service });
    const end = await checkout.deploy(['broken'], { DEPLOY_VERIFY_SECS: '6' });
    expect([end.status, end.stderr]).toStrictEqual([4, expect.stringMatching(words)]);
    expect(end.stdout).not.toContain('broken runs');
  });

  it('waits for healthcheck.sh of the service, and tells how it ended', async () => {
    const checkout = makeCheckout(['checked']);
    checkout.writeCompose('checked', { web });
    const count = join(checkout.root, 'count');
    // Not executable, and good at the second time of asking.
    checkout.write(
      'checkout/services/checked/healthcheck.sh',
      `echo x >>${count}; [ "$(wc -l <${count})" -ge 2 ]`,
    );
    expect((await checkout.deploy(['checked'])).status).toBe(0);

    checkout.write('checkout/services/checked/healthcheck.sh', '#!/bin/sh\nexit 9\n', 0o755);
    const end = await checkout.deploy(['checked'], { DEPLOY_VERIFY_SECS: '5' });
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('healthcheck.sh ended with 9') });
  });

  it('D44 leaves no process where its group is ended meanwhile', async () => {
    const checkout = makeCheckout(['ended']);
    checkout.writeCompose('ended', { web });
    const seen = join(checkout.root, 'pid');
    checkout.write(
      'checkout/services/ended/healthcheck.sh',
      `#!/bin/sh\necho $$ >${seen}\nexec sleep 600\n`,
      0o755,
    );
    const deploy = checkout.startDeploy(['ended']);
    const readPid = (): number => (existsSync(seen) ? Number(readFileSync(seen, 'utf8')) : 0);
    await expect.poll(readPid, { timeout: 60_000 }).toBeGreaterThan(0);
    const pid = readPid();
    process.kill(-deploy.pid, 'SIGTERM');
    await deploy.ended;
    await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 30_000 }).toBe(false);
  });
});

describe('5, sudo', () => {
  it('prints the command for sudo where the engine is open to root only', async () => {
    const checkout = makeCheckout([]);
    checkout.writeCompose('web', { web });
    chmodSync(checkout.root, 0o755);
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const end = await checkout.startDeploy(['web'], {}, nobody).ended;
    expect(end).toMatchObject({
      status: 5,
      stderr: expect.stringMatching(
        /: sudo \S+\/deploy-service\.sh --node web-1 --checkout \S+ --config \S+ web\n$/,
      ),
    });
  });
});
