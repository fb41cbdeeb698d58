// Whose container is it: strangers are never touched, launch-pad's are taken over once.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { configStamp } from '../../../src/lib/cluster/stamp.ts';
import { aService } from '../../support/builders.ts';
import { ask } from '../../support/edge-client.ts';
import { docker, engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { type Container, inspectAll, makeNode } from '../../support/node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

const socket = engineSocket();

const made: string[] = [];

/** Runs a container by Docker's own client, and gives what it is now. */
async function runContainer(
  name: string,
  labels: Record<string, string>,
  flags: readonly string[] = [],
): Promise<Container> {
  const all = Object.entries(labels).flatMap(([label, value]) => ['--label', `${label}=${value}`]);
  const image = labels['launchpad.image'] ?? 'reeve-demo/box:v1';
  const id = docker(socket, ['run', '-d', '--name', name, ...all, ...flags, image]).trim();
  made.push(id);
  return (await inspectAll(socket, [id]))[0] as Container;
}

/** The same container, never stopped, started, renamed or joined to another network. */
async function expectUntouched(...containers: readonly Container[]): Promise<void> {
  expect(
    await inspectAll(
      socket,
      containers.map(({ id }) => id),
    ),
  ).toEqual(containers);
}

const web = aService({
  image: 'reeve-demo/web:v1',
  memory: 64,
  ingress: { domain: 'web.example.com', port: 8080, edge: 'edge-1' },
  rollout: { maxSurge: 1, drainTimeout: '0s', stopGrace: '5s' },
});

/** As launch-pad's agent makes it (wire.md: labels, names, ports), without our label. */
async function runLaunchPadReplica(index: number, hostPort: number): Promise<Container> {
  return await runContainer(
    `launchpad_blog_web_${index}`,
    {
      'launchpad.managed': 'true',
      'launchpad.project': 'blog',
      'launchpad.service': 'web',
      'launchpad.image': web.image,
      'launchpad.replica': String(index),
      'launchpad.cpu': String(web.cpu),
      'launchpad.memory': String(web.memory),
      'launchpad.configStamp': configStamp(web),
    },
    [
      ...['--restart', 'unless-stopped', '--network', 'launchpadnet_blog', '--network-alias', 'web'],
      ...['--publish', `127.0.0.1:${hostPort}:8080`],
    ],
  );
}

afterEach(() => {
  docker(socket, ['rm', '-f', '-v', ...made.splice(0)]);
});

describe("a stranger's container", () => {
  it('is not touched, whatever it carries, and the tick says why', async () => {
    const node = makeNode();
    const labels = {
      'launchpad.managed': 'true',
      'launchpad.project': 'blog',
      'launchpad.service': 'worker',
    };
    const strangers = [
      await runContainer('launchpad_blog_worker_7', { ...labels, 'reeve.node': 'another-node' }),
      await runContainer('launchpad_old_thing_0', { ...labels, 'launchpad.project': 'old' }),
      await runContainer('somebody-else', { 'com.example': 'yes' }),
    ];
    await node.deploy([aWorkerDeploy()]);
    const end = await node.reeve('reconcile');
    expect(end.status).toBe(0);
    expect(end.stdout).toContain(
      'left alone: container launchpad_blog_worker_7: it belongs to node another-node',
    );
    expect(end.stdout).toContain('left alone: container launchpad_old_thing_0: it has no owner');
    await node.deploy([aWorkerDeploy({ env: { CHANGED: 'yes' } })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    await node.reeve('deploy', '--remove', 'blog', '--yes');
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(await node.containers()).toEqual([]);
    await expectUntouched(...strangers);
  });

  it('with a name that we need is that service’s error in one sentence; the others go on', async () => {
    const node = makeNode();
    const stranger = await runContainer('launchpad_blog_web_0', {});
    await node.deploy([aWebDeploy({ replicas: 1 }), aWorkerDeploy()]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [
        {
          key: 'blog/web',
          message:
            'cannot create container launchpad_blog_web_0: the name belongs to a container that is not ours: rename or remove that one',
          retryAt: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ],
    ]);
    expect((await node.containers()).map(({ name }) => name)).toEqual(['launchpad_blog_worker_0']);
    await expectUntouched(stranger);
    expect(node.state('ports.json')).toEqual({ version: 1, ports: {} });
    // Once the name is free, nothing keeps the service back for longer than its back-off.
    docker(socket, ['rename', 'launchpad_blog_web_0', 'launchpad_renamed']);
    await node.deploy([aWebDeploy({ replicas: 1, env: { AGAIN: 'yes' } }), aWorkerDeploy()]);
    expect((await node.reeve('reconcile')).status).toBe(0);
  });
});

describe("launch-pad's container", () => {
  it('is adopted with its port by a first tick that changes nothing; one that comes later is a stranger (L178, L37)', async () => {
    const proxy = await startEngineProxy(socket);
    const node = makeNode({ socket: proxy.socket });
    docker(socket, ['network', 'ls', '-q', '--filter', 'name=launchpadnet_blog']).trim() ||
      docker(socket, ['network', 'create', 'launchpadnet_blog']);
    const adopted = await runLaunchPadReplica(0, 27_999);
    const stateFile = join(node.root, 'launch-pad/state.json');
    mkdirSync(dirname(stateFile), { recursive: true });
    writeFileSync(stateFile, JSON.stringify({ ports: { 'blog/web#0': 27_999 }, cronFires: {} }));
    node.writeDesired([web]);

    const first = await node.reeve('reconcile', '--json');
    expect([first.status, first.json().outcome, first.json().actions]).toEqual([0, 'nothing-to-do', []]);
    expect(proxy.lines).toEqual(['GET /containers/json']);
    await expectUntouched(adopted);
    expect(node.shard().backends).toEqual([{ domain: 'web.example.com', hostPort: 27_999 }]);
    await expect.poll(async () => (await ask('127.0.0.1', 27_999)).status, { timeout: 30_000 }).toBe(200);
    expect(node.state('ports.json')).toEqual({ version: 1, ports: { 'blog/web#0': 27_999 } });

    // The import is done once: what launch-pad's file says later is not looked at.
    writeFileSync(stateFile, '{"ports":{"blog/web#0":20000}}');
    const late = await runLaunchPadReplica(1, 27_998);
    node.writeDesired([{ ...web, replicas: 2 }]);
    const second = await node.reeve('reconcile');
    expect(second.stdout).toContain('launchpad_blog_web_1: it has no owner and came after the adoption');
    await expectUntouched(adopted, late);

    node.writeDesired([{ ...web, image: 'reeve-demo/web:v2' }]);
    docker(socket, ['rename', 'launchpad_blog_web_1', 'launchpad_late']);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(await inspectAll(socket, [adopted.id])).toEqual([]);
    expect((await node.containers()).map(({ image, labels }) => [image, labels['reeve.node']])).toEqual([
      ['reeve-demo/web:v2', node.nodeId],
    ]);
  });
});
