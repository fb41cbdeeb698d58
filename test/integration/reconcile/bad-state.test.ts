// What a tick remembers and holds is damaged, full or taken: state files, ports, locks, containers in a bad way. What runs
// goes on running.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { configStamp } from '../../../src/lib/cluster/stamp.ts';
import { aService } from '../../support/builders.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker, makeNode, stopContainer } from '../../support/node.ts';
import { aRunningNode, sentenceOf } from '../../support/running-node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

describe.concurrent('the state directory', () => {
  it.for([
    ['empty', 'state-empty', ''],
    ['filled with NULs', 'state-nul', '\0'.repeat(300)],
    ['cut off', 'state-cut', '{"version":1,"services":{"x/y":{"repl'],
    ['of another shape', 'state-shape', '{"version":1,"services":[]}'],
  ])(
    'with every file %s is rebuilt from the containers, and nothing restarts (R32, R56)',
    async ([_name, project, content], { onTestFinished }) => {
      const { node, before } = await aRunningNode(String(project), onTestFinished);
      const files = [
        'rollouts.json',
        'ports.json',
        'shards.json',
        'ownership.json',
        'published.json',
        'images.json',
      ];
      const present = readdirSync(node.stateDir);
      for (const file of files.filter((one) => present.includes(one))) {
        node.writeState(file, String(content));
        rmSync(join(node.stateDir, `${file}.previous`), { force: true });
      }
      const end = await node.reeve('reconcile', '--json');
      expect([end.status, end.json().actions]).toEqual([0, []]);
      expect(end.stderr).toMatch(/warning: state file lost: .*rollouts\.json/);
      expect(await node.containers()).toEqual(before);
      expect(node.shard().backends).toHaveLength(1);
      // The port that is in use is reserved again (R57).
      const { ports } = JSON.parse(readFileSync(join(node.stateDir, 'ports.json'), 'utf8'));
      expect(Object.values(ports)).toEqual(node.shard().backends.map(({ hostPort }) => hostPort));
      expect(
        readdirSync(node.stateDir).filter((file) => file.startsWith('rollouts.json.corrupt-')),
      ).toHaveLength(1);
      // And it can go on from there.
      await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
      expect((await node.reeve('reconcile')).status).toBe(0);
      const [after, ...others] = await node.containers();
      expect([after?.image, others]).toEqual(['reeve-demo/web:v2', []]);
    },
  );

  it('of a newer reeve is refused with 65, and nothing stops', async ({ onTestFinished }) => {
    const { node, before } = await aRunningNode('newer', onTestFinished);
    node.writeState('rollouts.json', { version: 99, services: {} });
    const end = await node.reeve('reconcile');
    expect([end.status, sentenceOf(end)]).toEqual([
      65,
      `cannot read "${node.stateDir}/rollouts.json": it is version 99, this reeve knows versions up to 1`,
    ]);
    expect(await node.containers()).toEqual(before);
  });

  it('on a disk that is full or read-only starts nothing that it could not remember (O55)', async ({
    onTestFinished,
  }) => {
    const { node, before } = await aRunningNode('full', onTestFinished);
    const moved = `${node.stateDir}.aside`;
    renameSync(node.stateDir, moved);
    mkdirSync(node.stateDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', node.stateDir]);
    onTestFinished(() => {
      spawnSync('umount', [node.stateDir]);
    });
    execFileSync('cp', ['-a', `${moved}/.`, node.stateDir]);
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
    spawnSync('dd', ['if=/dev/zero', `of=${node.stateDir}/ballast`, 'bs=1024']);
    const full = await node.reeve('reconcile');
    expect([full.status, sentenceOf(full)]).toEqual([1, expect.stringMatching(/no space left/i)]);
    expect(await node.containers()).toEqual(before);
    rmSync(`${node.stateDir}/ballast`);
    execFileSync('mount', ['-o', 'remount,ro', node.stateDir]);
    const readOnly = await node.reeve('reconcile');
    expect([readOnly.status, sentenceOf(readOnly)]).toEqual([78, expect.stringMatching(/read-only/i)]);
    expect(await node.containers()).toEqual(before);
    execFileSync('mount', ['-o', 'remount,rw', node.stateDir]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ image }) => image)).toEqual(['reeve-demo/web:v2']);
  });
});

describe.concurrent('ports', () => {
  it('that are all reserved are the error of the service that needs one (R57)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'ports', onTestFinished });
    const ports = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, n) => [`other/svc#${n}`, 20_000 + n]),
    );
    node.writeState('ports.json', { version: 1, ports });
    await node.deploy([aWebDeploy({ replicas: 1 }), aWorkerDeploy()]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [
        {
          key: 'ports/web',
          message: 'cannot allocate a host port for "ports/web#0": all ports from 20000 to 29999 are taken',
          retryAt: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
    ]);
    expect((await node.containers()).map(({ name }) => name)).toEqual(['launchpad_ports_worker_0']);
    expect(node.state('rollouts.json')).toMatchObject({ services: { 'ports/web': { replicas: {} } } });
  });
});

describe.concurrent('the lock', () => {
  it('keeps a second tick out with 75 and the holder’s name, or makes it wait', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ project: 'lock', socket: proxy.socket, onTestFinished });
    await node.deploy([aWebDeploy()]);
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    proxy.beforeRequest = (line) => (line === 'POST /containers/create' ? held : undefined);
    const first = node.start(['reconcile']);
    await expect.poll(() => proxy.lines, { timeout: 60_000 }).toContain('POST /containers/create');
    const second = await node.reeve('reconcile', '--json');
    expect([second.status, second.json().outcome]).toEqual([75, 'busy']);
    expect(second.stderr).toContain(
      `reeve: lock reconcile is held by pid ${first.pid}, \`reeve reconcile\`, since `,
    );
    const third = node.start(['reconcile', '--wait', '60', '--json']);
    goOn();
    expect((await first.end).status).toBe(0);
    const waiting = await third.end;
    expect([waiting.status, waiting.json().actions]).toEqual([0, []]);
  });

  it('of one service defers that service only', async ({ onTestFinished }) => {
    const { node, before } = await aRunningNode('held', onTestFinished);
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' }), aWorkerDeploy()]);
    const holder = node.start(['lock', 'service@held@web', '--', 'sh', '-c', 'echo holding; read line']);
    await holder.waitFor('holding');
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json()['deferred']]).toEqual([
      0,
      [{ key: 'held/web', reason: expect.stringContaining('lock service@held@web is held by') }],
    ]);
    expect((await node.containers()).map(({ image }) => image)).toEqual([
      'reeve-demo/web:v1',
      'reeve-demo/worker:v1',
    ]);
    expect((await node.containers()).slice(0, 1)).toEqual(before);
    holder.tell('done');
    await holder.ended;
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers())[0]?.image).toBe('reeve-demo/web:v2');
  });
});

describe.concurrent('a container of ours', () => {
  it('that keeps restarting is told, and gives way to a fix (R6)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'loop', onTestFinished });
    const service = aService({ project: 'loop', image: 'reeve-demo/web:crash', memory: 64 });
    const labels = {
      'launchpad.managed': 'true',
      'launchpad.project': 'loop',
      'launchpad.service': 'web',
      'launchpad.image': service.image,
      'launchpad.replica': '0',
      'launchpad.cpu': String(service.cpu),
      'launchpad.memory': String(service.memory),
      'launchpad.configStamp': configStamp(service),
      'reeve.node': node.nodeId,
    };
    const flags = Object.entries(labels).flatMap(([label, value]) => ['--label', `${label}=${value}`]);
    await askDocker(engineSocket(), [
      ...['run', '-d', '--name', 'launchpad_loop_web_0', '--restart', 'unless-stopped', ...flags],
      service.image,
    ]);
    node.writeDesired([service]);
    const message = expect.stringMatching(/^replica 0 keeps restarting: Restarting \(1\)/);
    // A look may fall into the moment in which it runs; the engine waits longer each time.
    const look = async (): Promise<void> => {
      const end = await node.reeve('reconcile', '--json');
      expect([end.status, end.json().troubles]).toEqual([1, [{ key: 'loop/web', message }]]);
    };
    await vi.waitFor(look, { timeout: 60_000 });
    node.writeDesired([{ ...service, image: 'reeve-demo/web:v2' }]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ image, state }) => `${image} ${state}`)).toEqual([
      'reeve-demo/web:v2 running',
    ]);
  });

  it('that somebody has stopped or removed comes back', async ({ onTestFinished }) => {
    const { node, before } = await aRunningNode('back', onTestFinished);
    const [container] = before;
    await stopContainer(engineSocket(), String(container?.name));
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ id, state }) => ({ id, state }))).toEqual([
      { id: container?.id, state: 'running' },
    ]);
    await askDocker(engineSocket(), ['rm', '-f', String(container?.id)]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ name, state }) => `${name} ${state}`)).toEqual([
      'launchpad_back_web_0 running',
    ]);
    expect(node.shard().backends).toHaveLength(1);
  });
});
