import { describe, expect, it } from 'vitest';
import { type DropIn, findEnabled, renderDropIns } from '../../../src/lib/systemd/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

const place = 'deploy@control:/opt/homelab';
const node = {
  node: 'web-1',
  pull: `${place}/actions/deploy/web-1/`,
  push: `${place}/events/web-1/`,
  checkout: '/opt/homelab/checkout',
};
const control = { root: '/opt/homelab/actions' };

async function load(actions: object) {
  return await (await createConfigHome(JSON.stringify({ actions }))).load();
}

async function settings(actions: object, unit: string): Promise<string[]> {
  const dropIn = renderDropIns(await load(actions)).find((other: DropIn) => other.unit === unit);
  return dropIn?.text.split('\n').filter((line) => line !== '' && !line.startsWith('#')) ?? [];
}

describe('a machine with actions', () => {
  it.each([
    ['a node', node, ['reeve-actions.target']],
    ['a control host', control, ['reeve-action.timer', 'reeve-action.path']],
    ['both', { ...node, ...control }, ['reeve-actions.target', 'reeve-action.timer', 'reeve-action.path']],
  ])('has switched on what it is for: %s', async (_, actions, enabled) => {
    expect(findEnabled(await load(actions))).toEqual(enabled);
  });

  it('needs no drop-in as a node that pulls from elsewhere', async () => {
    expect(renderDropIns(await load(node))).toEqual([]);
  });

  it('lets the pull reach directories of this machine, and write where results go', async () => {
    const local = { ...node, pull: '/home/ops/deploy/web-1/', push: '/opt/homelab/events/{date}/web-1/' };
    const lines = await settings(local, 'reeve-rsync-pull.service');
    expect(lines).toContain('BindReadOnlyPaths=-/home/ops/deploy/web-1');
    expect(lines).toContain('ReadWritePaths=-/opt/homelab/events');
  });

  it('lets the control side write into its tree, and into nothing else', async () => {
    expect(await settings(control, 'reeve-action.service')).toEqual([
      '[Service]',
      'ReadWritePaths=-/opt/homelab/actions',
    ]);
  });

  it('confines no deploy by what it opens', async () => {
    expect(
      await settings({ ...node, checkout: '/home/ops/checkout' }, 'reeve-deploy-action.service'),
    ).toEqual([]);
  });
});
