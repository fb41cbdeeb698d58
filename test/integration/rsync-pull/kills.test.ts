// rsync-pull killed at any moment, and what that leaves in the mirror.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { until } from '../../support/balanced.ts';
import { makePullingNode, type PullingNode, readTree } from '../../support/pulling-node.ts';
import { type Sshd, startSshd } from '../../support/sshd.ts';

const whenAllDone = collectAfterAll();
let sshd: Sshd;
beforeAll(async () => {
  sshd = await startSshd(whenAllDone);
});

describe('what is left by a kill (O64)', () => {
  it('is never an action: half files, and directories of half files', async () => {
    const node = makePullingNode(sshd);
    const text = node.approve('redeploy-web-1-blog');
    node.write('state/actions/staging/.redeploy-web-1-blog.json.Ab12', '{"action_id":');
    node.write('state/actions/staging/.part/redeploy-web-1-blog.json', '{"action_id":');
    node.write('state/actions/staging/.~tmp~/redeploy-web-1-blog.json', '{"action_id":');
    node.write('state/actions/staging/redeploy-web-1-blog.json', text.slice(0, 20));
    expect(await node.pull()).toMatchObject({ status: 0, json: { left: [], refused: [] } });
    expect(readTree(node.path('inbox', ''))).toEqual({ 'redeploy-web-1-blog.json': text });
    expect(readdirSync(node.path('staging', ''))).toEqual(['redeploy-web-1-blog.json']);
  });

  it('is not performed once it was taken back at the source, nor while nobody can tell (D2, D41)', async () => {
    const node = makePullingNode(sshd);
    const name = 'redeploy-web-1-blog.json';
    const text = node.approve('redeploy-web-1-blog');
    node.write(`state/actions/staging/${name}`, text);
    rmSync(join(node.far.deploy, name));
    node.far.leadTo(1);
    expect(await node.pull()).toMatchObject({ status: 69 });
    expect([node.names('staging'), node.names('inbox')]).toEqual([[name], []]);
    node.far.leadTo(sshd.port);
    expect(await node.pull()).toMatchObject({ status: 0, json: { handedOver: [] } });
    expect([node.names('staging'), node.names('inbox')]).toEqual([[], []]);
  });

  it('is taken up by the next pull, whenever the one before was killed', async () => {
    const met: string[] = [];
    for (const moment of moments) {
      const node = makePullingNode(sshd);
      const actions = ['blog', 'shop', 'wiki'].map((service) => {
        const id = `redeploy-web-1-${service}`;
        return [`${id}.json`, node.approve(id, { service, details: { reason: service.repeat(9_000) } })];
      });
      const result = node.result('redeploy-web-1-mail');
      met.push(await killPull(node, moment));
      for (const [name, text] of Object.entries(readInbox(node)))
        expect([name, text]).toEqual(find(actions, name));
      await node.start(['rsync-pull', '--wait', '20']).ended;
      expect(readInbox(node)).toEqual(Object.fromEntries(actions));
      expect(Object.keys(readTree(node.far.events, isVisible))).toEqual([result]);
      expect(node.names('outbox')).toEqual([]);
    }
    // Kills have met each of these.
    expect(met).toEqual(expect.arrayContaining(['killed before', 'killed after the hand-over']));
  });
});

type Moment = (node: PullingNode) => boolean;

const moments: readonly Moment[] = [
  () => true,
  ({ root }) => existsSync(join(root, 'state/runs/rsync-pull.json')),
  (node) => node.names('staging').length > 0,
  (node) => node.names('staging').length >= 3,
  (node) => node.names('inbox').length > 0,
  (node) => node.names('inbox').length >= 3,
  ({ far }) => readdirSync(far.events).length > 0,
];

/** Unless it is over before. */
async function killPull(node: PullingNode, moment: Moment): Promise<string> {
  const program = node.start(['rsync-pull']);
  let isOver = false;
  void program.ended.then(() => {
    isOver = true;
  });
  await until(() => isOver || moment(node));
  program.child.kill('SIGKILL');
  const { signal } = await program.ended;
  if (signal === null) return 'over';
  return node.names('inbox').length > 0 ? 'killed after the hand-over' : 'killed before';
}

const isVisible = (name: string): boolean => !name.startsWith('.');

function readInbox(node: PullingNode): Record<string, string> {
  return node.names('inbox').length === 0 ? {} : readTree(node.path('inbox', ''), isVisible);
}

function find(actions: readonly (readonly string[])[], name: string): readonly string[] | undefined {
  return actions.find(([known]) => known === name);
}
