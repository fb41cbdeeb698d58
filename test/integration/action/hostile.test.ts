// What others write into the tree: nothing of it is followed, obeyed or run, and each piece is told.
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  actionId,
  anAction,
  aResult,
  type ControlHost,
  makeControlHost,
} from '../../support/control-host.ts';

const canary = 'canary-of-a-secret';

/** Under names of actions, but for those in the second list. */
const documents: [string, string | Buffer | object][] = [
  ['empty', ''],
  ['cut', JSON.stringify(anAction()).slice(0, 40)],
  ['binary', Buffer.from([0, 255, 1, 254])],
  ['list', []],
  ['deep', '['.repeat(60_000)],
  ['null', 'null'],
  ['other-id', { ...anAction(), action_id: 'redeploy-web-1-other' }],
  ['path-id', { ...anAction(), action_id: '../../etc/x' }],
  ['node-path', { ...anAction(), action_id: 'node-path', node: '../../../etc' }],
  ['node-dot', { ...anAction(), action_id: 'node-dot', node: '..' }],
  ['node-break', { ...anAction(), action_id: 'node-break', node: 'web-1\n' }],
  ['service-path', { ...anAction(), action_id: 'service-path', service: '../x' }],
  ['service-flag', { ...anAction(), action_id: 'service-flag', service: '--build' }],
  ['type-list', { ...anAction(), action_id: 'type-list', type: ['redeploy'] }],
  ['history-text', { ...anAction(), action_id: 'history-text', transition_history: 'approved' }],
  ['no-service', { ...anAction(), action_id: 'no-service', service: undefined }],
];
const foreign = [
  ...[
    'UPPER.json',
    'a b.json',
    'x.json.bak',
    '-flag.json',
    'new\nline.json',
    'ünïcode.json',
    'x.JSON',
    'json',
  ],
  `${'a'.repeat(65)}.json`,
];
const unread = ['link', 'link-to-action', 'pipe', 'directory', 'large'];

function plant(host: ControlHost, state: string): void {
  const at = (name: string): string => join(host.root, state, name);
  for (const [id, content] of documents) host.write(`homelab/actions/${state}/${id}.json`, content);
  for (const name of foreign) writeFileSync(at(name), JSON.stringify(anAction()));
  const secret = host.write('secret.json', {
    ...anAction(),
    action_id: 'link-to-action',
    details: { reason: canary },
  });
  symlinkSync(host.write('secret', canary), at('link.json'));
  symlinkSync(secret, at('link-to-action.json'));
  execFileSync('mkfifo', [at('pipe.json')]);
  mkdirSync(at('directory.json'));
  writeFileSync(at('large.json'), '{');
  truncateSync(at('large.json'), 50 * 1024 * 1024);
}

describe('hostile files', () => {
  it('D46 in pending are listed with what is wrong, and none can be approved', async () => {
    const host = makeControlHost();
    plant(host, 'pending');
    host.propose({ details: { reason: 'red\u001b[31m\nalert' } });
    const before = host.names('homelab/actions/pending');

    const list = await host.reeve('action', 'list', '--json');
    expect([list.status, list.json().outcome]).toStrictEqual([1, 'partial']);
    const found = list.json().actions as { id: string; problem: string | null }[];
    const bad = found.filter(({ problem }) => problem !== null).map(({ id }) => id);
    expect(bad).toStrictEqual([...documents.map(([id]) => id), ...unread].sort());
    expect(list.json().troubles).toStrictEqual([`pending: ${foreign.length} names are no action's`]);
    const plain = await host.reeve('action', 'list');
    expect(plain.stdout).toContain('red\\u001b[31m | alert');
    expect(list.stdout + plain.stdout).not.toContain(canary);

    for (const id of bad) {
      const end = await host.reeve('action', 'approve', id, '--yes');
      expect([id, end.status]).toStrictEqual([id, 65]);
      expect(end.stderr).not.toContain(canary);
    }
    for (const word of ['../pending/x', 'UPPER', 'a b', '', 'x/../y', 'a'.repeat(65)]) {
      expect((await host.reeve('action', 'approve', '--yes', '--', word)).status).toBe(64);
    }
    expect(host.names('homelab/actions/pending')).toStrictEqual(before);
    expect(host.names('homelab/actions/approved', true)).toStrictEqual([]);
  });

  it('D34 D46 in approved never reach a node: files have failed, what is no file stays and is told', async () => {
    const host = makeControlHost();
    plant(host, 'approved');
    const good = { ...anAction(), command: ['rm'], args: 'x', env: { A: '1' }, __proto__: { x: 1 } };
    host.write(`homelab/actions/approved/${actionId}.json`, good);

    const end = await host.reeve('action', 'dispatch', '--settle', '--json');
    expect([end.status, end.json().outcome]).toStrictEqual([1, 'partial']);
    expect(host.names('homelab/actions/deploy')).toStrictEqual(['web-1']);
    expect(host.names('homelab/actions/deploy/web-1', true)).toStrictEqual([`${actionId}.json`]);
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
    for (const [id] of documents) expect([id, host.statesOf(id)]).toStrictEqual([id, ['failed']]);
    for (const id of unread) expect([id, host.statesOf(id)]).toStrictEqual([id, ['approved']]);
    expect(host.bytes('secret').toString()).toBe(canary);
    expect(end.stdout + end.stderr).not.toContain(canary);
    expect(host.read('failed', 'no-service').transition_history).toMatchObject([
      { from: 'approved', to: 'failed', by: 'system', reason: 'it names no service' },
    ]);
    const again = await host.reeve('action', 'dispatch', '--settle', '--json');
    const troubles = again.json().actions.filter(({ outcome }: { outcome: string }) => outcome === 'trouble');
    expect(troubles.map(({ id }: { id: string }) => id)).toStrictEqual([...unread].sort());
  });

  it("D46 a link under the name of a node's file leads nothing out of the tree", async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    const outside = join(host.dir, 'outside.json');
    mkdirSync(join(host.root, 'deploy/web-1'), { recursive: true });
    symlinkSync(outside, join(host.root, 'deploy/web-1', `${actionId}.json`));
    const end = await host.reeve('action', 'dispatch');
    expect([end.status, host.names('.')]).toStrictEqual([1, expect.not.arrayContaining(['outside.json'])]);
    expect(host.statesOf(actionId)).toStrictEqual(['approved']);
  });

  it('keeps an action that is nearly too large out, so that every one can be brought to its end', async () => {
    const host = makeControlHost();
    host.propose({ note: 'x'.repeat(60_000) });
    expect(await host.reeve('action', 'approve', actionId, '--yes')).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('it is too large'),
    });
    host.propose({ note: 'x'.repeat(50_000) });
    expect(
      (await host.reeve('action', 'approve', actionId, '--yes', '--reason', 'y'.repeat(3000))).status,
    ).toBe(0);
    await host.reeve('action', 'dispatch');
    host.age(actionId, 901);
    await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
    expect((await host.reeve('action', 'show', actionId)).status).toBe(0);
  });
});

describe('very many files', () => {
  it('D46 hide no action: neither 20,000 names that are no action, nor as many events', async () => {
    const host = makeControlHost();
    const many = (directory: string, format: string): void => {
      mkdirSync(join(host.dir, directory), { recursive: true });
      execFileSync('/bin/sh', ['-c', `seq -f '${format}' 20000 | xargs touch`], {
        cwd: join(host.dir, directory),
      });
    };
    many('homelab/actions/pending', 'Junk-%06.0f.json');
    many('homelab/actions/approved', 'Junk-%06.0f.json');
    many('homelab/events/web-1', 'evt-web-1-%013.0f-service_healthy.json');
    host.propose();
    const list = await host.reeve('action', 'list', '--json');
    expect(list.json()).toMatchObject({ outcome: 'partial', actions: [{ id: actionId, state: 'pending' }] });
    await host.reeve('action', 'approve', actionId, '--yes');
    await host.reeve('action', 'dispatch');
    expect(host.names('homelab/actions/deploy/web-1')).toStrictEqual([`${actionId}.json`]);
    const { key } = host.read('running', actionId).transition_history.at(-1);
    const { name, content } = aResult({ key });
    host.write(`homelab/events/web-1/${name}`, content);
    const settled = await host.reeve('action', 'dispatch', '--settle');
    expect([settled.status, host.statesOf(actionId)]).toStrictEqual([0, ['completed']]);
  });
});
