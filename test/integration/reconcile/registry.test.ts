// Images from a registry: pulled within a rollout, missing without harm, and a tag that has moved to another image.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { docker, engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode } from '../../support/node.ts';
import { type Registry, startRegistry } from '../../support/registry.ts';
import { aWebDeploy } from '../../support/services.ts';

const socket = engineSocket();
const directory = mkdtempSync(join(tmpdir(), 'reeve-images-'));
let registry: Registry;

beforeAll(async () => {
  registry = await startRegistry({ root: join(directory, 'images') });
  for (const version of ['v1', 'v2']) push(`reeve-demo/web:${version}`, `team/web:${version}`);
});
afterAll(async () => {
  await registry.stop();
  rmSync(directory, { recursive: true });
  const listed = docker(socket, ['images', '--format', '{{.Repository}}:{{.Tag}}']).split('\n');
  const own = listed.filter((name) => name.startsWith(registry.host) && !name.endsWith('<none>'));
  if (own.length > 0) docker(socket, ['rmi', '-f', ...own]);
});

/** In the registry and no longer here. */
function push(local: string, name: string): void {
  const reference = `${registry.host}/${name}`;
  docker(socket, ['tag', local, reference]);
  docker(socket, ['push', '-q', reference]);
  docker(socket, ['rmi', reference]);
}

const web = (overrides: Readonly<Record<string, unknown>>): object =>
  aWebDeploy({ replicas: 1, ...overrides });

describe.concurrent('an image in a registry', () => {
  it('is pulled within the rollout; one that is missing there leaves the old replica alone (R7)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'pulled', onTestFinished });
    await node.deploy([web({ image: `${registry.host}/team/web:v1` })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    await node.deploy([web({ image: `${registry.host}/team/web:v2` })]);
    const rolled = await node.reeve('reconcile');
    expect([rolled.status, rolled.stderr]).toEqual([
      0,
      expect.stringContaining(`pulling ${registry.host}/team/web:v2`),
    ]);
    const before = await node.containers();
    expect(before.map(({ image }) => image)).toEqual([`${registry.host}/team/web:v2`]);
    await node.deploy([web({ image: `${registry.host}/team/web:v9` })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [
        {
          key: 'pulled/web',
          message: expect.stringMatching(/^cannot pull image ".*\/team\/web:v9": manifest for .* not found/),
          retryAt: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
    ]);
    expect(await node.containers()).toEqual(before);
    expect(node.shard().backends).toHaveLength(1);
    // Pushed at last: the same reference is another attempt, at once.
    push('reeve-demo/web:v1', 'team/web:v9');
    const next = await node.reeve('reconcile', '--json');
    expect([next.status, next.json().troubles]).toEqual([0, []]);
  });

  it('that failed is tried again at once when its tag has moved to another image (R18)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'moved', onTestFinished });
    const image = `${registry.host}/team/moving:latest`;
    push('reeve-demo/web:v1', 'team/moving:latest');
    await node.deploy([web({ image })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    push('reeve-demo/web:crash', 'team/moving:latest');
    await node.deploy([web({ image, env: { RELEASE: '2' } })]);
    const failed = await node.reeve('reconcile', '--json');
    expect([failed.status, failed.json().troubles[0]?.message]).toEqual([
      1,
      expect.stringContaining('DATABASE_URL is not set'),
    ]);
    const still = await node.reeve('reconcile', '--json');
    expect([still.status, still.json().actions]).toEqual([1, []]);
    push('reeve-demo/web:v2', 'team/moving:latest');
    const fixed = await node.reeve('reconcile', '--json');
    expect([fixed.status, fixed.json().troubles]).toEqual([0, []]);
    const [container, ...others] = await node.containers();
    expect([container?.env.includes('RELEASE=2'), others]).toEqual([true, []]);
    expect(await askDocker(socket, ['exec', String(container?.id), 'cat', '/www/index.html'])).toContain(
      'web v2',
    );
  });

  it('under another name than the one built here does not make that one be pulled', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'built', onTestFinished });
    const elsewhere = `${registry.host}/team/elsewhere:v1`;
    await askDocker(socket, ['tag', 'reeve-demo/web:v1', elsewhere]);
    await askDocker(socket, ['push', '-q', elsewhere]);
    const digests = await askDocker(socket, ['inspect', '-f', '{{.RepoDigests}}', 'reeve-demo/web:v1']);
    expect(digests).toContain(`${registry.host}/team/elsewhere@sha256:`);
    await node.deploy([web({ image: 'reeve-demo/web:v1' })]);
    const end = await node.reeve('reconcile');
    expect([end.status, end.stderr]).toEqual([0, expect.not.stringContaining('pull')]);
  });

  it('whose registry is down runs from the copy that is here', async ({ onTestFinished }) => {
    const own = await startRegistry({ root: join(directory, 'images') });
    const node = makeNode({ project: 'down', onTestFinished });
    const image = `${own.host}/team/web:v1`;
    await node.deploy([web({ image })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    await own.stop();
    await node.deploy([web({ image, env: { CHANGED: 'yes' } })]);
    const end = await node.reeve('reconcile');
    expect([end.status, end.stderr]).toEqual([
      0,
      expect.stringMatching(/warning: using the copy of .* that is here: /),
    ]);
    expect((await node.containers()).map(({ env }) => env.includes('CHANGED=yes'))).toEqual([true]);
    await askDocker(socket, ['rm', '-f', ...(await node.containers()).map(({ id }) => id)]);
    await askDocker(socket, ['rmi', image]);
  });
});
