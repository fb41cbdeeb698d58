// A source that means no good: bounded time and memory, nothing outside is read, each refusal is told, once.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { foreignNames } from '../../support/foreign-names.ts';
import { makePullingNode, type PullingNode, readTree } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';
import { tellFigure } from '../../support/system.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

const id = 'redeploy-web-1-blog';
const name = `${id}.json`;

type Left = { name: string; reason: string }[];

describe('what is no plain file (D46, O68)', () => {
  it.each<[string, (path: string, node: PullingNode) => void | Promise<void>]>([
    ['an absolute link', (path, node) => symlinkSync(node.write('outside/secret', 'secret'), path)],
    [
      'a link that climbs',
      (path, node) => {
        node.write('outside/secret', 'secret');
        symlinkSync('../../../../outside/secret', path);
      },
    ],
    ['a link to nothing', (path) => symlinkSync('/none', path)],
    ['a link to itself', (path) => symlinkSync(name, path)],
    ['a pipe', (path) => void execFileSync('mkfifo', [path])],
    ['a device', (path) => void execFileSync('mknod', [path, 'c', '1', '5'])],
    [
      'a socket',
      async (path) => {
        const server = createServer();
        await new Promise<void>((resolve) => server.listen(path, resolve));
        onTestFinished(() => void server.close());
      },
    ],
    [
      'a directory',
      (path) => {
        mkdirSync(path);
        writeFileSync(join(path, 'inner.json'), '{}');
      },
    ],
    [
      '50 MB',
      (path) => {
        writeFileSync(path, '');
        truncateSync(path, 50 * 1024 * 1024);
      },
    ],
    ['one byte too many', (path) => writeFileSync(path, Buffer.alloc(64 * 1024 + 1, ' '))],
  ])('is left alone: %s', async (_, put) => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-shop');
    await put(join(node.far.deploy, name), node);
    const end = await node.pull();
    expect(end).toMatchObject({ status: 1, json: { outcome: 'partial', refused: [name] } });
    expect((end.json['left'] as Left).map((left) => left.name)).toEqual([name]);
    expect(end.stderr).toContain(name);
    // Its neighbour is none the worse.
    expect(node.names('inbox')).toEqual(['redeploy-web-1-shop.json']);
    expect(node.names('staging')).toEqual(['redeploy-web-1-shop.json']);
    // Whoever waits for the action is told.
    const [event] = Object.values(readTree(node.far.events)).map((text) => JSON.parse(text));
    expect(event).toMatchObject({ correlation_id: id, payload: { status: 'failed' } });
    expect(JSON.stringify(readTree(node.far.events))).not.toContain('secret');
    // And nobody is told again.
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
    expect(readdirSync(node.far.events)).toHaveLength(1);
  });
});

describe('names', () => {
  it('of every kind are refused and told, and none is a path, an argument or a line (D30, D46)', async () => {
    const node = makePullingNode(sshd);
    const canary = node.write('outside/canary', 'canary');
    for (const one of foreignNames) writeFileSync(join(node.far.deploy, one), '{}');
    node.approve(id);
    const end = await node.pull();
    expect(end).toMatchObject({ status: 1, json: { outcome: 'partial', handedOver: [name], refused: [] } });
    expect((end.json['left'] as Left).map((left) => left.name).sort()).toEqual([...foreignNames].sort());
    expect(end.stderr).not.toContain('\u001b');
    expect(end.stderr.split('\n').filter((line) => line.includes('left alone'))).toHaveLength(
      foreignNames.length,
    );
    expect(node.names('inbox')).toEqual([name]);
    expect(readdirSync(node.path('staging', ''))).toEqual([name]);
    expect(readFileSync(canary, 'utf8')).toBe('canary');
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
  });

  it('that are no text are refused as well', async () => {
    const node = makePullingNode(sshd);
    const raw = Buffer.concat([Buffer.from(`${node.far.deploy}/`), Buffer.from([0xff, 0xfe, 0x2e, 0x6a])]);
    writeFileSync(raw, '{}');
    const end = await node.pull();
    expect(end).toMatchObject({ status: 1, json: { outcome: 'partial' } });
    expect(end.json['left']).toHaveLength(1);
    expect(readdirSync(node.path('staging', ''))).toEqual([]);
  });

  it('that differ from the id inside are refused, and the control side is told under the name', async () => {
    const node = makePullingNode(sshd);
    writeFileSync(join(node.far.deploy, name), node.approve('redeploy-web-1-shop'));
    expect(await node.pull()).toMatchObject({
      json: { refused: [name], handedOver: ['redeploy-web-1-shop.json'] },
    });
    const [event] = Object.values(readTree(node.far.events)).map((text) => JSON.parse(text));
    expect(event).toMatchObject({ correlation_id: id, payload: { status: 'failed' } });
  });

  it('of the unfinished are nobody’s business', async () => {
    const node = makePullingNode(sshd);
    for (const one of [`.${name}.Ab12cd`, '.hidden', '.part'])
      writeFileSync(join(node.far.deploy, one), '{}');
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
    expect(readdirSync(node.path('staging', ''))).toEqual([]);
  });

  it('are told again only where there is something new', async () => {
    const node = makePullingNode(sshd);
    writeFileSync(join(node.far.deploy, 'README'), 'x');
    expect((await node.pull()).status).toBe(1);
    expect(await node.pull()).toMatchObject({ status: 0, json: { left: [], stray: 1 } });
    writeFileSync(join(node.far.deploy, 'TODO'), 'x');
    expect(await node.pull()).toMatchObject({ status: 1, json: { left: [{ name: 'TODO' }], stray: 2 } });
  });
});

describe('what an action says', () => {
  it('is of no effect beyond its fields, and is not changed on its way (D34)', async () => {
    const node = makePullingNode(sshd);
    const text = node.approve(id, {
      command: 'touch /tmp/x',
      image: 'evil',
      env: { PATH: '/x' },
      args: ['-rf'],
    });
    await node.pull();
    expect(readTree(node.path('inbox', ''))).toEqual({ [name]: text });
  });

  it.each([
    ['nothing', ''],
    ['a NUL', '\0'],
    ['no text', Buffer.from([0xff, 0xfe])],
    ['half of it', '{"action_id":"redeploy-web-1-blog"'],
    ['a list', '[]'],
    ['null', 'null'],
    ['deep nesting', '['.repeat(30_000)],
    [
      'a path for a service',
      '{"action_id":"redeploy-web-1-blog","type":"redeploy","node":"web-1","service":"../x"}',
    ],
  ])('is refused where it is %s', async (_, content) => {
    const node = makePullingNode(sshd);
    writeFileSync(join(node.far.deploy, name), content);
    expect(await node.pull()).toMatchObject({ status: 1, json: { refused: [name], handedOver: [] } });
    expect(node.names('inbox')).toEqual([]);
    expect(readdirSync(node.far.events)).toHaveLength(1);
    expect((await node.pull()).status).toBe(0);
  });
});

describe('too much', () => {
  it('is refused as a whole, in bounded time and memory: 100,000 files', async () => {
    const node = makePullingNode(sshd);
    node.approve(id);
    await node.pull();
    const make =
      'import os,sys\nfor i in range(100000): os.close(os.open(f"{sys.argv[1]}/redeploy-web-1-{i}.json", os.O_CREAT))';
    execFileSync('python3', ['-c', make, node.far.deploy]);
    const startedAtMs = performance.now();
    const measured = await measurePull(node);
    const tookMs = performance.now() - startedAtMs;
    tellFigure(
      `a pull from 100,000 files is refused in ${(tookMs / 1000).toFixed(1)} s with ${measured.mostKb} kB`,
    );
    expect(measured.status).toBe(1);
    expect(measured.stderr).toContain('more than 2000 entries, and none of them is taken');
    expect(tookMs).toBeLessThan(60_000);
    expect(measured.mostKb).toBeLessThan(200_000);
    expect(node.names('inbox')).toEqual([name]);
    expect(existsSync(node.path('staging', '')) ? node.names('staging') : []).toEqual([]);
    // A source that is well again is pulled as if nothing had been.
    execFileSync('find', [node.far.deploy, '-name', 'redeploy-web-1-[0-9]*', '-delete']);
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
  });

  it('is not what a busy node has: 500 actions are pulled at once', async () => {
    const node = makePullingNode(sshd);
    for (let count = 0; count < 500; count += 1)
      node.approve(`redeploy-web-1-s${count}`, { service: `s${count}` });
    expect((await node.pull()).status).toBe(0);
    expect(node.names('inbox')).toHaveLength(500);
  });
});

/** The largest of its processes counts. */
async function measurePull(
  node: PullingNode,
): Promise<{ status: number | null; stderr: string; mostKb: number }> {
  const file = join(node.root, 'time');
  const { status, stderr } = await node.startUnder(['/usr/bin/time', '-f', '%M', '-o', file], ['rsync-pull'])
    .ended;
  return { status, stderr, mostKb: Number(readFileSync(file, 'utf8').trim().split('\n').at(-1)) };
}
