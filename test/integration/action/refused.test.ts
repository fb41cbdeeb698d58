// What a node cannot read ends the action that waits under its name: both ends of it, with the files that go between them.
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeActionsNode } from '../../support/actions-node.ts';
import { makeControlHost } from '../../support/control-host.ts';

const id = 'redeploy-vps-web';

it.each<[string, (path: string) => void, string]>([
  ['no JSON', (path) => writeFileSync(path, 'no action'), 'it is not whole JSON'],
  ['no action', (path) => writeFileSync(path, '{"action_id":"redeploy-vps-web"}'), 'type is no text'],
  ['too large', (path) => writeFileSync(path, 'x'.repeat(100_000)), 'it is too large'],
  ['a link', (path) => symlinkSync('/etc/passwd', path), 'it is no plain file'],
  ['a directory', (path) => mkdirSync(path), 'it is a directory'],
])(
  'D11 D45 a file at its node that is %s ends an action at once, with the reason',
  async (_, spoil, reason) => {
    const host = makeControlHost();
    const source = join(host.root, 'deploy/vps');
    const events = join(host.dir, 'homelab/events/vps');
    mkdirSync(events);
    const node = makeActionsNode({ pull: `${source}/`, push: `${events}/` });
    host.propose({ action_id: id, node: 'vps', service: 'web' });
    await host.reeve('action', 'approve', id, '--yes');
    await host.reeve('action', 'dispatch');
    const path = join(source, `${id}.json`);
    rmSync(path);
    spoil(path);
    await node.reeve('rsync-pull');
    await node.reeve('deploy-action');
    await node.reeve('rsync-pull');

    const settled = await host.reeve('action', 'settle', '--json');
    expect(settled.json().actions).toMatchObject([
      {
        action: 'finish',
        to: 'failed',
        reason: expect.stringContaining('node vps reports failed: rejected: '),
      },
    ]);
    expect(settled.json().actions[0].reason).toContain(reason);
    expect(host.statesOf(id)).toStrictEqual(['failed']);
    expect((await host.reeve('action', 'show', id)).stdout).toMatch(/reported failed at .*rejected: /);
    expect(node.ran()).toStrictEqual([]);
  },
);
