// `reeve rsync-pull` as a process, over a real sshd with restricted keys.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { makePullingNode, type PullingNode, readTree } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

describe('a pull', () => {
  it('brings an approved action into the inbox, byte for byte, and wakes who performs it (D2, D6, D15)', async () => {
    const node = makePullingNode(sshd);
    const text = node.approve('redeploy-web-1-blog');
    expect(await node.pull()).toMatchObject({
      status: 0,
      json: { outcome: 'done', handedOver: ['redeploy-web-1-blog.json'], refused: [], left: [], sent: [] },
    });
    expect(readTree(node.path('inbox', ''))).toEqual({ 'redeploy-web-1-blog.json': text });
    expect(node.read('run/wake/deploy-action')).toBe('');
    // The source's file is the executor's.
    expect(readTree(node.far.deploy)).toEqual({ 'redeploy-web-1-blog.json': text });
  });

  it('has nothing to do where the source is empty, and where it has nothing new (O65)', async () => {
    const node = makePullingNode(sshd);
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
    node.approve('redeploy-web-1-blog');
    await node.pull();
    rmSync(join(node.root, 'run/wake/deploy-action'));
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
    expect(node.read('run/wake/deploy-action')).toBeUndefined();
  });

  it('brings again what was approved again, under the same id (D42)', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    await node.pull();
    rmSync(node.path('inbox', 'redeploy-web-1-blog.json'));
    const history = [{ from: 'pending', to: 'approved', timestamp: 1_790_000_999, by: 'operator-tg-7' }];
    const text = node.approve('redeploy-web-1-blog', { transition_history: history });
    expect(await node.pull()).toMatchObject({ json: { handedOver: ['redeploy-web-1-blog.json'] } });
    expect(readTree(node.path('inbox', ''))).toEqual({ 'redeploy-web-1-blog.json': text });
  });

  it('brings nothing that was begun or refused before: the marker decides (D36)', async () => {
    const node = makePullingNode(sshd);
    writeFileSync(join(node.far.deploy, 'redeploy-web-1-blog.json'), '{"action_id":');
    expect(await node.pull()).toMatchObject({
      status: 1,
      json: { outcome: 'partial', refused: ['redeploy-web-1-blog.json'] },
    });
    expect(node.names('processed-deploy-actions')).toHaveLength(1);
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'nothing-to-do' } });
    expect(node.names('processed-deploy-actions')).toHaveLength(1);
  });

  it('tells the control side with the same run that it has refused an action (D41, D45)', async () => {
    const node = makePullingNode(sshd);
    writeFileSync(join(node.far.deploy, 'redeploy-web-1-blog.json'), '{"action_id":');
    await node.pull();
    const [event] = Object.values(readTree(node.far.events)).map((text) => JSON.parse(text));
    expect(event).toMatchObject({
      ...{ node: 'web-1', type: 'action_result', correlation_id: 'redeploy-web-1-blog' },
      payload: { status: 'failed', reason: expect.stringContaining('whole JSON') },
    });
    expect(node.names('outbox')).toEqual([]);
  });

  it('forgets in its mirror what has gone at the source, and only there', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    node.approve('redeploy-web-1-shop');
    await node.pull();
    rmSync(join(node.far.deploy, 'redeploy-web-1-shop.json'));
    await node.pull();
    expect(node.names('staging')).toEqual(['redeploy-web-1-blog.json']);
    expect(node.names('inbox')).toEqual(['redeploy-web-1-blog.json', 'redeploy-web-1-shop.json']);
  });

  it('never looks at the inbox of others, beside its own (D19, D20)', async () => {
    const node = makePullingNode(sshd);
    const others = join(node.far.deploy, '../../dispatch/web-1');
    mkdirSync(others, { recursive: true });
    writeFileSync(join(others, 'container-restart-web-1-blog.json'), '{}');
    symlinkSync(others, join(node.far.deploy, 'dispatch'));
    await node.pull();
    expect(node.names('inbox')).toEqual([]);
    expect(readTree(others)).toEqual({ 'container-restart-web-1-blog.json': '{}' });
  });

  it('works with a directory of this machine as well', async () => {
    const node = makePullingNode(sshd);
    const { deploy, events } = node.far;
    const config = { node: 'web-1', pull: deploy, push: events, checkout: '/opt/checkout' };
    node.write('etc/reeve.yaml', { actions: config });
    node.approve('redeploy-web-1-blog');
    const name = node.result('redeploy-web-1-shop');
    expect(await node.pull()).toMatchObject({
      status: 0,
      json: { handedOver: ['redeploy-web-1-blog.json'], sent: [name] },
    });
  });

  it('is for a node: the control side alone has no use for it (78)', async () => {
    const node = makePullingNode(sshd);
    node.write('etc/reeve.yaml', { actions: { root: '/opt/homelab/actions' } });
    expect((await node.pull()).status).toBe(78);
    node.write('etc/reeve.yaml', {});
    expect((await node.pull()).status).toBe(78);
  });
});

describe('a push', () => {
  it('sends each result and forgets it once it has arrived (D9, D10, D16)', async () => {
    const node = makePullingNode(sshd);
    const names = [node.result('redeploy-web-1-blog', 1), node.result('redeploy-web-1-shop', 2)];
    expect(await node.pull()).toMatchObject({ status: 0, json: { outcome: 'done', sent: names } });
    expect(Object.keys(readTree(node.far.events))).toEqual(names);
    expect(node.names('outbox')).toEqual([]);
  });

  it('puts each into the directory of its day where the place says so', async () => {
    const node = makePullingNode(sshd);
    const push = node.far.push.replace('events/web-1/', 'events/web-1/{date}/web-1/');
    writeConfig(node, { push });
    const day = (iso: string): number => Date.parse(iso);
    const first = node.result('redeploy-web-1-blog', day('2026-11-29T23:59:59.999Z'));
    const second = node.result('redeploy-web-1-shop', day('2026-11-30T00:00:00Z'));
    expect(await node.pull()).toMatchObject({ status: 0, json: { sent: [first, second] } });
    expect(Object.keys(readTree(join(node.far.events, '2026-11-29/web-1')))).toEqual([first]);
    expect(Object.keys(readTree(join(node.far.events, '2026-11-30/web-1')))).toEqual([second]);
  });

  it('leaves what is no result where it is', async () => {
    const node = makePullingNode(sshd);
    node.result('redeploy-web-1-blog');
    writeFileSync(node.path('outbox', 'note.txt'), 'mine');
    await node.pull();
    expect(node.names('outbox')).toEqual(['note.txt']);
    expect(Object.keys(readTree(node.far.events))).not.toContain('note.txt');
  });

  it('keeps a result until it has arrived, whatever is in its place (D43)', async () => {
    const node = makePullingNode(sshd);
    const name = node.result('redeploy-web-1-blog');
    mkdirSync(join(node.far.events, name, 'full'), { recursive: true });
    expect((await node.pull()).status).toBe(1);
    expect(node.names('outbox')).toEqual([name]);
    rmSync(join(node.far.events, name), { recursive: true });
    expect(await node.pull()).toMatchObject({ status: 0, json: { sent: [name] } });
    expect(readFileSync(join(node.far.events, name), 'utf8')).toBe('{"of":"redeploy-web-1-blog"}\n');
  });

  it('leaves although nothing can be pulled, and the other way round', async () => {
    const node = makePullingNode(sshd);
    const name = node.result('redeploy-web-1-blog');
    writeConfig(node, { pull: `${node.far.pull}none/` });
    const unpulled = await node.pull();
    expect(unpulled.status).not.toBe(0);
    expect(Object.keys(readTree(node.far.events))).toEqual([name]);

    node.result('redeploy-web-1-shop');
    node.approve('redeploy-web-1-blog');
    writeConfig(node, { push: `${node.far.push}none/none/none/` });
    expect((await node.pull()).status).toBe(1);
    expect(node.names('inbox')).toEqual(['redeploy-web-1-blog.json']);
    expect(node.names('outbox')).toHaveLength(1);
  });
});

function writeConfig(node: PullingNode, over: Readonly<Record<string, string>>): void {
  const { pull, push } = node.far;
  node.write('etc/reeve.yaml', {
    actions: { node: 'web-1', pull, push, checkout: '/opt/checkout', ...over },
  });
}
