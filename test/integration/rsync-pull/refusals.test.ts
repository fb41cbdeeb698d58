// What is refused at the source: told once for each that is really there, in parts where there is too much, and not kept for ever.
import { mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { makePullingNode, type PullingNode } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

const name = 'redeploy-web-1-blog.json';

describe('what is left again (D45)', () => {
  const put = (node: PullingNode, date: string, content: string): void => {
    const path = join(node.far.deploy, name);
    writeFileSync(path, content);
    utimesSync(path, new Date(date), new Date(date));
  };
  const [may, november] = ['2026-05-30T12:00:00Z', '2026-11-30T12:00:00Z'];
  const big = ' '.repeat(70_000);

  it.each<[string, string, (node: PullingNode) => unknown]>([
    ['a large one, later', big, (node) => put(node, november, big)],
    ['a large one of another size', big, (node) => put(node, may, `${big} `)],
    [
      'a large one after it was gone',
      big,
      async (node) => {
        rmSync(join(node.far.deploy, name));
        expect((await node.pull()).status).toBe(0);
        put(node, november, big);
      },
    ],
    ['what is no action, later', '{"action_id":', (node) => put(node, november, '{"action_id":')],
  ])('is told again, under the same name: %s', async (_, content, again) => {
    const node = makePullingNode(sshd);
    put(node, may, content);
    expect(await node.pull()).toMatchObject({ status: 1, json: { refused: [name] } });
    // The same one is told once.
    expect(await node.pull()).toMatchObject({ status: 0, json: { refused: [] } });
    await again(node);
    expect(await node.pull()).toMatchObject({ status: 1, json: { refused: [name] } });
    expect(await node.pull()).toMatchObject({ status: 0, json: { refused: [] } });
    expect(readdirSync(node.far.events)).toHaveLength(2);
  });
});

describe('without end (D46)', () => {
  it('is taken in parts: while 490 actions wait that nobody performs, and 210 files are none', async () => {
    const node = makePullingNode(sshd);
    mkdirSync(node.path('inbox', ''), { recursive: true });
    for (let count = 0; count < 490; count += 1) writeFileSync(node.path('inbox', `old-${count}.json`), '{}');
    for (let count = 0; count < 20; count += 1)
      node.approve(`redeploy-web-1-s${count}`, { service: `s${count}` });
    for (let count = 0; count < 210; count += 1)
      writeFileSync(join(node.far.deploy, `broken-${count}.json`), '{"action_id":');
    const first = await node.pull();
    expect([first.status, first.json['postponed']]).toEqual([1, 20]);
    expect(first.json['refused']).toHaveLength(200);
    expect(first.stderr).toContain('20 more at the source wait until there is room here');
    expect(node.names('inbox')).toHaveLength(500);
    expect(await node.pull()).toMatchObject({ json: { handedOver: [], postponed: 10 } });
    expect(readdirSync(node.far.events)).toHaveLength(210);
    expect(await node.pull()).toMatchObject({ status: 0, json: { refused: [], postponed: 10 } });
  });

  it('ends for the day where 2000 were refused, and goes on on the next', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    writeFileSync(join(node.far.deploy, 'broken-1.json'), '{');
    const notes = node.path('refused-deploy-actions', '');
    mkdirSync(notes, { recursive: true });
    for (let count = 0; count < 2000; count += 1) writeFileSync(join(notes, contentKey('a', `${count}`)), '');
    expect(await node.pull()).toMatchObject({
      status: 0,
      json: { handedOver: [], refused: [], postponed: 2 },
    });
    const yesterday = new Date(Date.now() - 25 * 60 * 60_000);
    for (const note of readdirSync(notes)) utimesSync(join(notes, note), yesterday, yesterday);
    expect(await node.pull()).toMatchObject({
      json: { handedOver: [name], refused: ['broken-1.json'], postponed: 0 },
    });
  });

  it('is not kept for ever: a refusal that is a month old goes when its file has gone', async () => {
    const node = makePullingNode(sshd);
    for (const one of ['broken-1.json', 'broken-2.json']) writeFileSync(join(node.far.deploy, one), '{');
    await node.pull();
    const old = new Date(Date.now() - 31 * 24 * 60 * 60_000);
    const notes = node.path('refused-deploy-actions', '');
    for (const note of readdirSync(notes)) utimesSync(join(notes, note), old, old);
    rmSync(join(node.far.deploy, 'broken-1.json'));
    expect((await node.pull()).status).toBe(0);
    // It is still in the mirror as this pull begins to look.
    expect((await node.pull()).status).toBe(0);
    expect(node.names('processed-deploy-actions')).toEqual([expect.stringMatching(/^broken-2-/)]);
    expect(readdirSync(notes)).toEqual([expect.stringMatching(/^broken-2-/)]);
    expect(readdirSync(node.far.events)).toHaveLength(2);
  });
});

describe('an action of which nobody knows whether it was begun', () => {
  it('stays at the source, and the pull fails and says why', async () => {
    const node = makePullingNode(sshd);
    node.approve('redeploy-web-1-blog');
    const markers = node.path('processed-deploy-actions', '');
    mkdirSync(dirname(markers), { recursive: true });
    symlinkSync(markers, markers);
    const end = await node.pull();
    expect([end.status, node.names('inbox')]).toEqual([78, []]);
    expect(end.stderr).toMatch(/cannot read ".*processed-deploy-actions": ELOOP/);
  });
});
