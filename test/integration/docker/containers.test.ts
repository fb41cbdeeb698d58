// The client against a real engine: the life of containers, networks and volumes.
import { afterEach, describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/lib/docker/client.ts';
import { ContainerMissingError, ImageMissingError, NameTakenError } from '../../../src/lib/docker/errors.ts';
import type { ContainerSpec } from '../../../src/lib/docker/types.ts';
import { InputError } from '../../../src/lib/errors.ts';
import { docker, engineSocket } from '../../support/engine.ts';
import { freePort } from '../../support/ports.ts';

const socket = engineSocket();
const engine = openEngine({ socket });
const label = { 'reeve.test': 'containers' };

afterEach(async () => {
  for (const { id } of await engine.listContainers({ labels: ['reeve.test=containers'] })) {
    await engine.removeContainer(id, { force: true });
  }
  await engine.removeNetwork('reeve-test-net');
  for (const { name } of await engine.listVolumes({ namePrefix: 'reeve-test-' }))
    await engine.removeVolume(name);
});

function spec(changes: Partial<ContainerSpec> = {}): ContainerSpec {
  return {
    name: 'reeve-test',
    image: 'reeve-demo/box:v1',
    env: {},
    labels: label,
    restart: 'no',
    ports: [],
    volumes: [],
    logs: { maxSizeBytes: 1_000_000, maxFiles: 2 },
    ...changes,
  };
}

async function start(changes: Partial<ContainerSpec> = {}): Promise<string> {
  const { id } = await engine.createContainer(spec(changes));
  await engine.startContainer(id);
  return id;
}

describe('a container', () => {
  it('runs as its spec says: limits, restart, ports, volumes, network, bounded logs (R62)', async () => {
    const port = await freePort();
    await engine.ensureNetwork('reeve-test-net', label);
    const before = Date.now();
    const id = await start({
      image: 'reeve-demo/web:v1',
      cpus: 0.5,
      memoryBytes: 67_108_864,
      restart: 'unless-stopped',
      network: { name: 'reeve-test-net', aliases: ['web'] },
      ports: [{ containerPort: 8080, hostPort: port, hostIp: '127.0.0.1' }],
      volumes: [{ name: 'reeve-test-data', path: '/data', labels: { kept: 'yes' } }],
    });
    const [row] = await engine.listContainers({ labels: ['reeve.test=containers'] });
    expect(row).toEqual({
      id,
      name: 'reeve-test',
      image: 'reeve-demo/web:v1',
      imageId: (await engine.inspectImage('reeve-demo/web:v1'))?.id,
      labels: label,
      state: 'running',
      statusText: expect.stringMatching(/^Up /),
      createdAt: expect.any(Date),
      ports: [{ containerPort: 8080, hostPort: port, hostIp: '127.0.0.1' }],
      networks: ['reeve-test-net'],
      volumes: ['reeve-test-data'],
    });
    expect(Math.abs((row?.createdAt.getTime() ?? 0) - before)).toBeLessThan(60_000);
    const [raw] = JSON.parse(docker(socket, ['inspect', id]));
    expect(raw.HostConfig).toMatchObject({
      NanoCpus: 500_000_000,
      Memory: 67_108_864,
      RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1000000', 'max-file': '2' } },
    });
    expect(raw.NetworkSettings.Networks['reeve-test-net'].Aliases).toContain('web');
    expect(await engine.listVolumes({ namePrefix: 'reeve-test-' })).toEqual([
      {
        name: 'reeve-test-data',
        labels: { kept: 'yes' },
        createdAt: expect.any(Date),
        mountpoint: expect.stringMatching(/reeve-test-data/),
      },
    ]);
    const body = await fetchUntilUp(`http://127.0.0.1:${port}/`);
    expect(body).toBe(`web v1 on ${id.slice(0, 12)}\n`);
  });

  it('is started, stopped and removed twice without complaint, and its volume stays', async () => {
    const id = await start({ volumes: [{ name: 'reeve-test-data', path: '/data' }] });
    await untilItListens(id);
    await engine.startContainer(id);
    await engine.stopContainer(id, 10);
    await engine.stopContainer(id, 10);
    expect(await engine.inspectContainer(id)).toMatchObject({ state: 'exited', exitCode: 0 });
    await engine.removeContainer(id, { force: false });
    await engine.removeContainer(id, { force: false });
    await engine.stopContainer(id, 10);
    await engine.killContainer(id, 'SIGTERM');
    expect(await engine.inspectContainer(id)).toBeUndefined();
    expect((await engine.listVolumes({ namePrefix: 'reeve-test-' })).map(({ name }) => name)).toEqual([
      'reeve-test-data',
    ]);
  });

  it('that ignores SIGTERM is killed after its grace', async () => {
    const id = await start({ command: ['/bin/sh', '-c', 'trap "" TERM; while :; do sleep 1; done'] });
    const began = performance.now();
    await engine.stopContainer(id, 1);
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(await engine.inspectContainer(id)).toMatchObject({ state: 'exited', exitCode: 137 });
  });

  it('tells its exit code to who waits, before and after its end', async () => {
    const id = await start({ command: ['/bin/sh', '-c', 'sleep 0.3; exit 7'] });
    expect(await engine.waitContainer(id)).toBe(7);
    expect(await engine.waitContainer(id)).toBe(7);
    const details = await engine.inspectContainer(id);
    expect(details).toMatchObject({ exitCode: 7, oomKilled: false, restartCount: 0, error: '' });
    expect(details?.finishedAt?.getTime()).toBeGreaterThan(details?.startedAt?.getTime() ?? Infinity);
    await expect(engine.waitContainer('reeve-test-none')).rejects.toThrow(ContainerMissingError);
  });

  it('that runs is removed only by force', async () => {
    const id = await start();
    await expect(engine.removeContainer(id, { force: false })).rejects.toMatchObject({
      code: 'engine',
      status: 409,
    });
    expect(await engine.inspectContainer(id)).toMatchObject({ state: 'running' });
    await engine.removeContainer(id, { force: true });
  });

  it('gets a signal by name', async () => {
    const id = await start();
    await untilItListens(id);
    await engine.killContainer(id, 'SIGTERM');
    expect(await engine.waitContainer(id)).toBe(0);
    await engine.killContainer(id, 'SIGTERM');
  });

  it('gives the last lines of its log, both streams, whole characters (R52)', async () => {
    const id = await start({
      command: [
        '/bin/sh',
        '-c',
        'echo first; echo "ä 😀" >&2; sleep 0.1; i=0; while [ $i -lt 12000 ]; do printf 😀; i=$((i+1)); done; echo',
      ],
    });
    await engine.waitContainer(id);
    const last = await engine.containerLogs(id, { tailLines: 1 });
    expect([last.length, last === `${'😀'.repeat(12_000)}\n`]).toEqual([24_001, true]);
    const all = (await engine.containerLogs(id, { tailLines: 100 })).split('\n');
    expect(all.filter((line) => line.length < 100).sort()).toEqual(['', 'first', 'ä 😀']);
    expect(all).toHaveLength(4);
  });
});

describe('a create that cannot be', () => {
  it('for a missing image says to pull it', async () => {
    const error = await engine
      .createContainer(spec({ image: 'reeve-demo/none:v1' }))
      .catch((reason) => reason);
    expect(error).toBeInstanceOf(ImageMissingError);
    expect(error).toMatchObject({ reference: 'reeve-demo/none:v1', code: 'image-missing' });
  });

  it('for a name in use names it', async () => {
    await engine.createContainer(spec());
    const error = await engine.createContainer(spec()).catch((reason) => reason);
    expect(error).toBeInstanceOf(NameTakenError);
    expect(error).toMatchObject({ containerName: 'reeve-test', code: 'name-taken' });
  });

  it('for what the engine refuses carries its words', async () => {
    const refused = engine.createContainer(spec({ memoryBytes: 1000 }));
    await expect(refused).rejects.toThrow(InputError);
    await expect(engine.createContainer(spec({ name: 'no/name' }))).rejects.toThrow(
      /^cannot create container "no\/name": Invalid container name/,
    );
  });
});

describe('networks and volumes', () => {
  it('are made once and joined once, however often that is asked', async () => {
    await engine.ensureNetwork('reeve-test-net', { a: 'b' });
    await engine.ensureNetwork('reeve-test-net', { a: 'b' });
    const id = await start();
    await engine.connectNetwork('reeve-test-net', id, ['box']);
    await engine.connectNetwork('reeve-test-net', id, ['box']);
    const [row] = await engine.listContainers({ labels: ['reeve.test'] });
    expect(row?.networks.toSorted()).toEqual(['bridge', 'reeve-test-net']);
    const [raw] = JSON.parse(docker(socket, ['network', 'inspect', 'reeve-test-net']));
    expect(raw.Labels).toEqual({ a: 'b' });
    await expect(engine.removeNetwork('reeve-test-net')).rejects.toThrow(/has active endpoints/);
    await expect(engine.connectNetwork('reeve-test-none', id, [])).rejects.toMatchObject({ status: 404 });
  });

  it('asked for by several at once are made without an error and without a double', async () => {
    await Promise.all([1, 2, 3].map(() => engine.ensureNetwork('reeve-test-net', {})));
    const listed = docker(socket, ['network', 'ls', '-q', '--filter', 'name=reeve-test-net']);
    expect(listed.trim().split('\n')).toHaveLength(1);
  });

  it('lists volumes by the beginning of their name only', async () => {
    await start({ volumes: [{ name: 'reeve-test-a', path: '/a' }] });
    expect(await engine.listVolumes({ namePrefix: 'test-a' })).toEqual([]);
    await expect(engine.removeVolume('reeve-test-a')).rejects.toThrow(/volume is in use/);
  });
});

/** To signals: the shell of box:v1 does so before it sleeps. */
async function untilItListens(id: string): Promise<void> {
  await expect.poll(() => docker(socket, ['top', id]), { timeout: 30_000 }).toMatch(/\bsleep \d/);
}

async function fetchUntilUp(url: string): Promise<string> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await (await fetch(url)).text();
    } catch (error) {
      if (tries > 1_200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
