// What operators do to a running node: hold, restart, roll back, prune, look. And what the node keeps in order by itself.
import { describe, expect, it } from 'vitest';
import { startTraffic } from '../../support/edge-client.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker, makeNode } from '../../support/node.ts';
import { aRunningNode } from '../../support/running-node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

const socket = engineSocket();

describe.concurrent('a hold', () => {
  it('keeps a tick from the service, not from the others, until it ends', async ({ onTestFinished }) => {
    const { node, before } = await aRunningNode('hold', onTestFinished);
    expect((await node.reeve('hold', 'hold/web', '--for', '1h', '--reason', 'looking into it')).status).toBe(
      0,
    );
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' }), aWorkerDeploy()]);
    const held = await node.reeve('reconcile', '--json');
    expect([held.status, held.json()['deferred']]).toEqual([
      0,
      [{ key: 'hold/web', reason: 'held: looking into it' }],
    ]);
    expect((await node.containers()).slice(0, 1)).toEqual(before);
    expect((await node.containers()).map(({ name }) => name)).toEqual([
      'launchpad_hold_web_0',
      'launchpad_hold_worker_0',
    ]);
    expect(node.shard().backends).toHaveLength(1);
    expect((await node.reeve('hold', '--end')).status).toBe(0);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers())[0]?.image).toBe('reeve-demo/web:v2');
  });

  it('on the node keeps a tick from everything', async ({ onTestFinished }) => {
    const { node, before } = await aRunningNode('holdall', onTestFinished);
    await node.reeve('hold', '--node', '--for', '1h', '--reason', 'maintenance');
    await node.reeve('deploy', '--remove', 'holdall', '--yes');
    const held = await node.reeve('reconcile', '--json');
    expect([held.status, held.json().outcome, await node.containers()]).toEqual([0, 'deferred', before]);
  });
});

describe.concurrent('restart', () => {
  it('replaces the replicas one by one, none of them missed by anybody', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'restart', onTestFinished });
    await node.deploy([aWebDeploy()]);
    await node.reeve('reconcile');
    const before = (await node.containers()).map(({ id }) => id);
    expect((await node.reeve('restart', 'restart/web')).status).toBe(64);
    expect((await node.reeve('restart', 'restart/web', '--yes')).status).toBe(0);
    const running = startTraffic({ readShard: () => node.shard(), perSecond: 50, pollMs: 0 });
    const end = await node.reeve('reconcile', '--json');
    const traffic = await running.stop();
    expect([end.status, end.json().actions.map(({ action }) => action)]).toEqual([
      0,
      [
        ...['create', 'serve', 'drain', 'wait', 'stop'],
        ...['remove', 'create', 'serve', 'drain', 'wait', 'stop', 'remove'],
      ],
    ]);
    expect([traffic.failures, traffic.fewestBackends, traffic.mostBackends]).toEqual([[], 2, 3]);
    const after = await node.containers();
    expect(after.map(({ id, image }) => [before.includes(id), image])).toEqual([
      [false, 'reeve-demo/web:v1'],
      [false, 'reeve-demo/web:v1'],
    ]);
  });
});

describe.concurrent('rollback', () => {
  it('brings back the deploy before, from the store to the containers', async ({ onTestFinished }) => {
    const { node } = await aRunningNode('rollback', onTestFinished);
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2', env: { NEW: 'yes' } })]);
    await node.reeve('reconcile');
    const end = await node.reeve('rollback', 'rollback/web', '--json');
    expect(end.status).toBe(0);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const [container, ...others] = await node.containers();
    expect([container?.image, container?.env.includes('NEW=yes'), others]).toEqual([
      'reeve-demo/web:v1',
      false,
      [],
    ]);
    const history = await node.reeve('history', 'rollback/web', '--json');
    expect(history.status).toBe(0);
    expect(history.stdout).toContain('rollback rollback/web');
  });
});

/** An image of its own: another tag of one in use would be in use, too. */
async function makeImage(reference: string): Promise<void> {
  const id = (await askDocker(socket, ['create', 'reeve-demo/web:v1'])).trim();
  await askDocker(socket, ['commit', '-c', `LABEL is=${reference}`, id, reference]);
  await askDocker(socket, ['rm', id]);
}

describe.concurrent('prune', () => {
  it('removes images that reeve has run and nothing refers to, and no others', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'prune', onTestFinished });
    const images = ['prune-test/web:old', 'prune-test/web:new', 'prune-test/web:stranger'];
    for (const image of images) await makeImage(image);
    onTestFinished(async () => {
      await askDocker(socket, ['rmi', '-f', ...images]).catch(() => {});
    });
    await node.deploy([aWebDeploy({ replicas: 1, image: images[0] })]);
    await node.reeve('reconcile');
    await node.deploy([aWebDeploy({ replicas: 1, image: images[1] })]);
    await node.reeve('reconcile');
    // A rollback can still go back to it, and nobody could fetch it again.
    expect((await node.reeve('prune', '--json')).json().outcome).toBe('nothing-to-do');
    for (const turn of ['1', '2', '3', '4', '5']) {
      await node.deploy([aWebDeploy({ replicas: 1, image: images[1], env: { TURN: turn } })]);
    }
    const dry = await node.reeve('prune', '--dry-run', '--json');
    expect([dry.status, dry.json().actions]).toEqual([
      2,
      [expect.objectContaining({ action: 'removeImage', reference: 'prune-test/web:old' })],
    ]);
    const end = await node.reeve('prune');
    expect([end.status, end.stdout]).toEqual([0, expect.stringMatching(/^removed prune-test\/web:old \(/)]);
    const left = await askDocker(socket, ['images', '--format', '{{.Repository}}:{{.Tag}}']);
    expect(images.map((image) => left.split('\n').includes(image))).toEqual([false, true, true]);
    expect(left).toContain('reeve-demo/web:v1');
    expect((await node.reeve('prune', '--json')).json().outcome).toBe('nothing-to-do');
  });

  it('removes a volume only by its name, unused, confirmed, and known to be without a backup', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'volume', onTestFinished });
    await node.deploy([aWorkerDeploy({ volumes: [{ name: 'data', path: '/data' }] })]);
    await node.reeve('reconcile');
    const prune = (...flags: string[]) => node.reeve('prune', '--volumes', 'volume/worker/data', ...flags);
    const unconfirmed = await prune('--no-backup');
    expect([unconfirmed.status, unconfirmed.stderr]).toEqual([64, expect.stringContaining('--yes')]);
    const unsaved = await prune('--yes');
    expect([unsaved.status, unsaved.stderr]).toEqual([65, expect.stringContaining('no verified backup')]);
    const used = await prune('--yes', '--no-backup');
    expect([used.status, used.stderr]).toEqual([1, expect.stringContaining('launchpad_volume_worker_0')]);
    await node.reeve('deploy', '--remove', 'volume', '--yes');
    await node.reeve('reconcile');
    const list = () => askDocker(socket, ['volume', 'ls', '-q', '--filter', 'name=launchpadvol_volume_']);
    expect(await list()).toBe('launchpadvol_volume_worker_data\n');
    expect((await prune('--yes', '--no-backup')).status).toBe(0);
    expect(await list()).toBe('');
    const gone = await prune('--yes', '--no-backup');
    expect([gone.status, gone.stderr]).toEqual([65, expect.stringContaining('there is no volume')]);
  });
});

describe.concurrent('a running container', () => {
  it('that has left its project network joins it again, under its service’s name', async ({
    onTestFinished,
  }) => {
    const { node, before } = await aRunningNode('joined', onTestFinished);
    const [container] = before;
    expect(container?.networks).toEqual(['launchpadnet_joined']);
    await askDocker(socket, ['network', 'disconnect', 'launchpadnet_joined', String(container?.id)]);
    await askDocker(socket, ['network', 'connect', 'bridge', String(container?.id)]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions.map(({ action }) => action)]).toEqual([0, ['join']]);
    await node.deploy([aWebDeploy({ replicas: 1 }), aWorkerDeploy()]);
    const added = await node.reeve('reconcile', '--json');
    expect([added.status, added.json().troubles]).toEqual([0, []]);
    const worker = (await node.containers()).find(({ name }) => name.includes('worker'));
    const answered = await askDocker(socket, [
      'exec',
      String(worker?.id),
      'wget',
      '-qO-',
      'http://web:8080/healthz',
    ]);
    expect(answered).toBe('ok\n');
  });
});

describe.concurrent('a network that cannot be joined', () => {
  it('is told once a run, and keeps neither the container nor its service from anything', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(socket, onTestFinished);
    const node = makeNode({ project: 'unjoined', socket: proxy.socket, onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    await node.reeve('reconcile');
    const [container] = await node.containers();
    await askDocker(socket, ['network', 'connect', 'bridge', String(container?.id)]);
    await askDocker(socket, ['network', 'disconnect', 'launchpadnet_unjoined', String(container?.id)]);
    proxy.beforeRequest = (line) => {
      if (line.endsWith('/connect')) throw new Error('refused by the test');
    };
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, proxy.lines.filter((line) => line.endsWith('/connect'))]).toEqual([
      0,
      ['POST /networks/launchpadnet_unjoined/connect'],
    ]);
    expect(end.stderr).toMatch(
      /^warning: cannot join launchpad_unjoined_web_0 to network launchpadnet_unjoined: /m,
    );
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ image, networks }) => [image, networks])).toEqual([
      ['reeve-demo/web:v2', ['launchpadnet_unjoined']],
    ]);
  });
});

describe.concurrent('LAUNCHPAD_DEBUG_S3=1', () => {
  it('tells each tick what is written to the store and what is skipped (L111, L162)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'debug', env: { LAUNCHPAD_DEBUG_S3: '1' }, onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    const first = await node.reeve('reconcile');
    expect(first.stderr).toMatch(/^shard written edge=edge-1 why=/m);
    expect(first.stderr).toMatch(/^status written why=/m);
    const second = await node.reeve('reconcile');
    expect(second.stderr).toBe('shard skipped edge=edge-1 why=skip\nstatus skipped why=skip\n');
  });
});

describe.concurrent('an edge that a service leaves', () => {
  it('gets a routing without it, and the new one gets it (L26)', async ({ onTestFinished }) => {
    const { node } = await aRunningNode('edges', onTestFinished);
    const ingress = { domain: 'web.example.com', port: 8080, edge: 'edge-2' };
    await node.deploy([aWebDeploy({ replicas: 1, ingress })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([0, []]);
    expect([node.shard('edge-1').backends.length, node.shard('edge-2').backends.length]).toEqual([0, 1]);
    await node.reeve('deploy', '--remove', 'edges', '--yes');
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect([node.shard('edge-1').backends, node.shard('edge-2').backends]).toEqual([[], []]);
  });
});
