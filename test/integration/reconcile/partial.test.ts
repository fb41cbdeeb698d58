// Ticks of which a part fails: what has begun is settled and told, and what works goes on.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker, makeNode } from '../../support/node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

describe.concurrent('a tick', () => {
  it('whose status cannot be written does its work all the same, and exits 1 (L33)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'unwritten', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    const place = join(node.storeDir, 'nodes', node.nodeId, 'status.json');
    mkdirSync(place);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([
      1,
      [{ key: 'status', message: expect.stringContaining('status.json": it is not a regular file') }],
    ]);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
    rmSync(place, { recursive: true });
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(node.status().services.map(({ state }) => state)).toEqual(['running']);
  });

  it('that loses the engine ends only when its running steps have, and tells of them (L32)', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'lost', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    let lists = 0;
    let answered = false;
    proxy.beforeRequest = (line) => {
      if (line !== 'GET /containers/json') return;
      lists += 1;
      if (lists > 1) throw new Error('the engine is away');
    };
    proxy.beforeAnswer = async (line) => {
      if (line !== 'POST /containers/create') return;
      while (lists < 2) await new Promise((resolve) => setTimeout(resolve, 20));
      answered = true;
    };
    const end = await node.reeve('reconcile');
    expect([end.status, answered]).toEqual([69, true]);
    const history = readFileSync(join(node.stateDir, 'history.ndjson'), 'utf8').trim().split('\n');
    expect(history.map((line) => JSON.parse(line))).toMatchObject([
      { action: 'add' },
      { action: 'create', service: 'worker', outcome: 'done' },
    ]);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
  });

  it('that misses the engine’s answer to a start goes on with the container that runs', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'missed', onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    let missed = false;
    proxy.beforeAnswer = (line) => {
      if (!line.endsWith('/start') || missed) return;
      missed = true;
      throw new Error('the answer is lost');
    };
    const end = await node.reeve('reconcile', '--json');
    const { actions } = end.json();
    expect(actions.map(({ action, error }) => [action, error !== undefined])).toEqual([
      ['create', true],
      ['serve', false],
    ]);
    expect(proxy.lines.filter((line) => line === 'POST /containers/create')).toHaveLength(1);
    expect(node.state('ports.json')).toMatchObject({
      ports: { 'missed/web#0': node.shard().backends[0]?.hostPort },
    });
    expect(node.status().services.map(({ state }) => state)).toEqual(['running']);
  });

  it('sets a damaged record of what it has published aside, and publishes anew (R32, R55)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'damaged', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    node.writeState('published.json', '\0'.repeat(300));
    rmSync(join(node.stateDir, 'published.json.previous'), { force: true });
    expect((await node.reeve('reconcile')).status).toBe(0);
    const aside = readdirSync(node.stateDir).filter((name) => name.startsWith('published.json.corrupt-'));
    expect([aside.length, node.state('published.json')]).toMatchObject([1, { body: node.status() }]);
  });

  it('for one service does not call the node converged, nor forget the others’ troubles', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'only', onTestFinished });
    await node.deploy([aWorkerDeploy(), aWorkerDeploy({ service: 'other' })]);
    expect((await node.reeve('reconcile', '--service', 'only/worker')).status).toBe(0);
    expect((await node.containers()).map(({ name }) => name)).toEqual(['launchpad_only_worker_0']);
    expect(node.reeveJson()).toMatchObject({ converged: false });
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(node.reeveJson()).toMatchObject({ converged: true });
  });
});

describe.concurrent('a release that cannot start', () => {
  it('is tried at once where its tag has moved to another image (R18)', async ({ onTestFinished }) => {
    const socket = engineSocket();
    const image = await makeImage(socket, 'moved', ['/no/such/program'], onTestFinished);
    const node = makeNode({ project: 'moved', onTestFinished });
    await node.deploy([aWorkerDeploy({ image })]);
    expect((await node.reeve('reconcile')).status).toBe(1);
    expect((await node.reeve('reconcile', '--json')).json().actions).toEqual([]);
    await askDocker(socket, ['tag', 'reeve-demo/worker:v1', image]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
  });

  it('and prints its secret does not have it told', async ({ onTestFinished }) => {
    const script = 'echo "cannot use $API_KEY"; exit 1';
    const image = await makeImage(engineSocket(), 'leaky', ['/bin/sh', '-c', script], onTestFinished);
    const node = makeNode({ project: 'leaky', onTestFinished });
    node.writeSecret('leaky/worker/API_KEY', 'hunter2-hunter2');
    await node.deploy([aWorkerDeploy({ image, secrets: ['API_KEY'] })]);
    const end = await node.reeve('reconcile', '--json');
    expect(end.json().troubles[0]?.message).toContain('cannot use ***');
    const told = [end.stdout, end.stderr, JSON.stringify([node.status(), node.reeveJson()])];
    const kept = ['history.ndjson', 'rollouts.json', 'published.json', 'runs/reconcile.json'];
    told.push(...kept.map((name) => readFileSync(join(node.stateDir, name), 'utf8')));
    expect(told.filter((text) => text.includes('hunter2'))).toEqual([]);
  });
});

/** The box image with another command. */
async function makeImage(
  socket: string,
  name: string,
  command: readonly string[],
  whenFinished: (clean: () => Promise<void>) => void,
): Promise<string> {
  const image = `reeve-test/${name}:1`;
  const id = (await askDocker(socket, ['create', 'reeve-demo/box:v1', 'true'])).trim();
  await askDocker(socket, ['commit', '-c', `CMD ${JSON.stringify(command)}`, id, image]);
  await askDocker(socket, ['rm', id]);
  whenFinished(async () => {
    await askDocker(socket, ['rmi', '-f', image]);
  });
  return image;
}
