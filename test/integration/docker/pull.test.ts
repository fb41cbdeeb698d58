// Pulls from real registries: open, closed by a password, empty, down.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/lib/docker/client.ts';
import { PullError } from '../../../src/lib/docker/errors.ts';
import type { PullProgress } from '../../../src/lib/docker/types.ts';
import { docker, engineSocket } from '../../support/engine.ts';
import { freePort } from '../../support/ports.ts';
import { type Registry, startRegistry } from '../../support/registry.ts';

const dir = mkdtempSync(join(tmpdir(), 'reeve-pull-'));
const login = { user: 'reeve', password: 'pass:word with ünicode' };
const socket = engineSocket();
const engine = openEngine({ socket, logins: { directory: dir, tokenFile: join(dir, 'ecr.json') } });
let open: Registry;
let closed: Registry;
let digest: string;

beforeAll(async () => {
  open = await startRegistry({ root: join(dir, 'images') });
  closed = await startRegistry({ root: join(dir, 'images'), login });
  // A layer of some size, so that there is progress to be seen.
  writeFileSync(join(dir, 'content'), Buffer.alloc(3_000_000, 'reeve'));
  execFileSync('tar', ['-C', dir, '-cf', join(dir, 'content.tar'), 'content']);
  docker(socket, ['import', join(dir, 'content.tar'), `${open.host}/team/app:v1`]);
  const pushed = docker(socket, ['push', `${open.host}/team/app:v1`]);
  digest = /digest: (sha256:[0-9a-f]{64})/.exec(pushed)?.[1] ?? '';
  await engine.removeImage(`${open.host}/team/app:v1`);
});

afterAll(async () => {
  await open.stop();
  await closed.stop();
  engine.close();
  rmSync(dir, { recursive: true });
});

async function failure(reference: string): Promise<PullError> {
  const error = await engine.pullImage(reference).then(
    () => undefined,
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(PullError);
  return error;
}

function writeLogin(password: string): void {
  const auth = Buffer.from(`${login.user}:${password}`).toString('base64');
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ auths: { [closed.host]: { auth } } }), {
    mode: 0o600,
  });
}

describe('a pull', () => {
  it('brings the image and tells its progress layer by layer', async () => {
    const reference = `${open.host}/team/app:v1`;
    expect(await engine.inspectImage(reference)).toBeUndefined();
    const progress: PullProgress[] = [];
    await engine.pullImage(reference, (line) => progress.push(line));
    expect((await engine.inspectImage(reference))?.digests).toEqual([`${open.host}/team/app@${digest}`]);
    expect(progress[0]).toEqual({ layer: 'v1', status: 'Pulling from team/app' });
    expect(progress.some((line) => (line.currentBytes ?? 0) > 0 && (line.totalBytes ?? 0) > 0)).toBe(true);
    expect(progress.some((line) => line.status === 'Pull complete')).toBe(true);
    await engine.pullImage(reference);
    await engine.removeImage(reference);
    await engine.removeImage(reference);
    expect(await engine.inspectImage(reference)).toBeUndefined();
  });

  it('by digest brings exactly that image, whatever the tag beside it says', async () => {
    await engine.pullImage(`${open.host}/team/app:other@${digest}`);
    expect(await engine.inspectImage(`${open.host}/team/app@${digest}`)).toBeDefined();
    const listed = (await engine.listImages()).find((image) =>
      image.references.includes(`${open.host}/team/app@${digest}`),
    );
    expect(listed?.references).toEqual([`${open.host}/team/app@${digest}`]);
    await engine.removeImage(`${open.host}/team/app@${digest}`);
  });

  it('of a tag or name that does not exist says so', async () => {
    const missingTag = await failure(`${open.host}/team/app:v9`);
    expect([missingTag.code, missingTag.message]).toEqual([
      'image-not-found',
      `cannot pull image "${open.host}/team/app:v9": manifest for ${open.host}/team/app:v9 not found: manifest unknown: manifest unknown`,
    ]);
    const missingName = await failure(`${open.host}/nobody/nothing:v1`);
    expect(missingName.code).toBe('image-not-found');
  });

  it('without a tag is of the tag latest, not of all', async () => {
    const error = await failure(`${open.host}/team/app`);
    expect(error.message).toContain('app:latest not found');
  });

  it('from a registry that is down says what could not be reached', async () => {
    const host = `127.0.0.1:${await freePort()}`;
    const error = await failure(`${host}/team/app:v1`);
    expect(error.code).toBe('pull');
    expect(error.message).toContain(`dial tcp ${host}: connect: connection refused`);
  });
});

describe('a registry behind a password', () => {
  it('refuses without credentials, and the error names the file they belong in', async () => {
    rmSync(join(dir, 'config.json'), { force: true });
    const error = await failure(`${closed.host}/team/app:v1`);
    expect(error.message).toContain('no basic auth credentials');
    expect(error.message).toContain(`; "${dir}/config.json" has no credentials for ${closed.host}`);
  });

  it('lets in with them', async () => {
    writeLogin(login.password);
    await engine.pullImage(`${closed.host}/team/app:v1`);
    expect(await engine.inspectImage(`${closed.host}/team/app:v1`)).toBeDefined();
    await engine.removeImage(`${closed.host}/team/app:v1`);
  });

  it('refuses wrong ones, and the error does not show them', async () => {
    writeLogin('wrong-password');
    const error = await failure(`${closed.host}/team/app:v1`);
    expect(error.message).toContain(`the credentials in "${dir}/config.json" were refused`);
    expect(error.message).not.toContain('wrong-password');
  });
});
