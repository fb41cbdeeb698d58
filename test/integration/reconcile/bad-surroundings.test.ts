// What a tick needs from others is missing or broken: store, engine, directories. One sentence each, the right exit code,
// and what runs goes on running.
import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answer, type FakeEngine, startFakeEngine, startRawEngine } from '../../support/fake-engine.ts';
import { makeNode } from '../../support/node.ts';
import { aRunningNode, sentenceOf } from '../../support/running-node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';
import { makeTempDir } from '../../support/temp.ts';

describe.concurrent('a store', () => {
  it('that is missing, a file, or shows nothing is told with 69, and nothing stops', async ({
    onTestFinished,
  }) => {
    const { node, before } = await aRunningNode('store', onTestFinished);
    const aside = `${node.storeDir}.aside`;
    renameSync(node.storeDir, aside);
    const missing = await node.reeve('reconcile');
    expect([missing.status, sentenceOf(missing)]).toEqual([
      69,
      `cannot use store "${node.storeDir}": there is no such directory: is it mounted? (cluster.store)`,
    ]);
    writeFileSync(node.storeDir, '');
    const file = await node.reeve('reconcile');
    expect([file.status, sentenceOf(file)]).toEqual([
      69,
      `cannot use store "${node.storeDir}": it is not a directory`,
    ]);
    rmSync(node.storeDir);
    mkdirSync(node.storeDir);
    const empty = await node.reeve('reconcile', '--json');
    expect([empty.status, empty.json().actions]).toEqual([0, []]);
    rmSync(node.storeDir, { recursive: true });
    renameSync(aside, node.storeDir);
    expect(await node.containers()).toEqual(before);
    expect((await node.reeve('reconcile')).status).toBe(0);
  });

  it('that takes no writes keeps a leaving replica in its place until it does', async ({
    onTestFinished,
  }) => {
    const { node, before } = await aRunningNode('shards', onTestFinished);
    const upstream = join(node.storeDir, 'nodes/edge-1/upstream');
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
    const kept = `${upstream}.aside`;
    renameSync(upstream, kept);
    writeFileSync(upstream, '');
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles.map(({ key }) => key)]).toEqual([
      1,
      expect.arrayContaining(['routing/edge']),
    ]);
    // The old one was taken out of the routing by nobody: it may still be asked, so it still serves.
    const [old] = before;
    expect((await node.containers()).filter(({ id }) => id === old?.id)).toEqual(before);
    rmSync(upstream);
    renameSync(kept, upstream);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ image }) => image)).toEqual(['reeve-demo/web:v2']);
  });
});

/** An engine, and what is said of it. */
type BadEngine = {
  name: string;
  socket: (onTestFinished: (clean: () => void | Promise<void>) => void) => Promise<FakeEngine | string>;
  status: number;
  says: RegExp;
};

const badEngines: BadEngine[] = [
  {
    name: 'that is not there',
    socket: async () => '/nowhere/docker.sock',
    status: 69,
    says: /^cannot list containers: the engine at "\/nowhere\/docker\.sock" .*(not there|no such|does not exist|missing|not running)/i,
  },
  {
    name: 'that was killed and left its socket behind',
    socket: async (onTestFinished) => {
      const left = join(makeTempDir(onTestFinished), 'engine.sock');
      const die =
        "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
      spawnSync(process.execPath, ['--eval', die, left]);
      return left;
    },
    status: 69,
    says: /refused|not running|nobody/i,
  },
  {
    name: 'that hangs',
    socket: () => startFakeEngine('1.41', () => {}),
    status: 69,
    says: /did not answer within 30s/,
  },
  {
    name: 'that hangs up',
    socket: () => startRawEngine((socket) => void socket.destroy()),
    status: 69,
    says: /^cannot list containers: the engine at /,
  },
  {
    name: 'that talks garbage',
    socket: () => startRawEngine((socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n')),
    status: 69,
    says: /^cannot list containers: the engine at /,
  },
  {
    name: 'that answers with a web page',
    socket: () =>
      startFakeEngine('1.41', (_line, response) => {
        response.end('<html>hello</html>');
      }),
    status: 69,
    says: /^cannot list containers: the engine at .*JSON/,
  },
  {
    name: 'that answers with something else than a list',
    socket: () => startFakeEngine('1.41', (_line, response) => answer(response, 200, { message: 'hello' })),
    status: 69,
    says: /^cannot list containers: the engine at /,
  },
  {
    name: 'that fails inside',
    socket: () =>
      startFakeEngine('1.41', (_line, response) => answer(response, 500, { message: 'disk is on fire' })),
    status: 69,
    says: /disk is on fire/,
  },
  {
    name: 'that is too old',
    socket: () => startFakeEngine('1.24', (_line, response) => answer(response, 200, [])),
    status: 78,
    says: /speaks API 1\.24, but 1\.41 \(Docker 20\.10\) or newer is needed/,
  },
  {
    name: 'that is too new',
    socket: () =>
      startFakeEngine('9.9', (line, response) => {
        if (line === 'GET /version') answer(response, 200, { MinAPIVersion: '2.0' });
        else if (line.startsWith('GET /containers/json')) answer(response, 200, []);
        else answer(response, 400, { message: 'client version 1.52 is too old' });
      }),
    status: 78,
    says: /it needs API 2\.0 or newer, and this reeve speaks at most [\d.]+; update reeve/,
  },
];

describe.concurrent('an engine', () => {
  it.for(badEngines)('$name is told in one sentence with $status', async (bad, { onTestFinished }) => {
    const engine = await bad.socket(onTestFinished);
    const socket = typeof engine === 'string' ? engine : engine.socket;
    if (typeof engine !== 'string') onTestFinished(() => engine.stop());
    const node = makeNode({ project: 'nothing', socket, onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, sentenceOf(end)]).toEqual([bad.status, expect.stringMatching(bad.says)]);
    expect(end.json()).toMatchObject({ outcome: 'failed', error: {} });
    // The store tells it to whoever looks there (L16).
    expect(node.status().caddy.error).toMatch(bad.says);
    expect(node.state('runs/reconcile.json')).toMatchObject({ outcome: 'failed', exitCode: bad.status });
  });
});

describe.concurrent('the machine', () => {
  it('whose state directory cannot be made is told with 78', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'nothing', onTestFinished });
    mkdirSync(dirname(node.stateDir), { recursive: true });
    writeFileSync(node.stateDir, '');
    await expect(node.deploy([aWorkerDeploy()])).resolves.toBeDefined();
    const end = await node.reeve('reconcile');
    expect([end.status, sentenceOf(end)]).toEqual([78, expect.stringContaining(node.stateDir)]);
  });
});
