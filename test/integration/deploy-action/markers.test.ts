// Markers that are not ours to read or to write: each concerns its own approval, and nothing else stops.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openQuarantine } from '../../../src/lib/actions/leave.ts';
import { contentKey } from '../../../src/lib/deploy-runner/key.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
import { mountSmall } from '../../support/full-disk.ts';

/** Of a deploy of web that was done and told. The outbox is empty again. */
async function makeMarkerPath(node: ActionsNode): Promise<string> {
  node.put('web');
  await node.reeve('deploy-action');
  rmSync(node.places.outbox, { recursive: true });
  const [name = ''] = readdirSync(node.places.markers);
  return join(node.places.markers, name);
}

const told = (node: ActionsNode): string[] =>
  node.results().map(({ actionId, reason = '' }) => `${actionId}: ${reason}`);

describe('a marker', () => {
  it('that cannot be read is told, and keeps no other action from its deploy', async () => {
    const node = makeActionsNode();
    const path = await makeMarkerPath(node);
    rmSync(path);
    mkdirSync(path);
    writeFileSync(path.replace(/json$/, 'open'), '');
    node.put('web');
    node.put('db');
    const first = await node.reeve('deploy-action');
    expect([first.status, first.stdout.trim().split('\n')]).toEqual([
      1,
      [
        'redeploy-vps-web: unknown, its marker cannot be read: it may have been done',
        'redeploy-vps-db: succeeded',
      ],
    ]);
    expect([node.ran(), node.inbox(), node.quarantine().length]).toEqual([['web', 'db'], [], 1]);
    expect(told(node).sort()).toEqual([
      'redeploy-vps-db: ',
      'redeploy-vps-web: unknown: its marker cannot be read: it may have been done',
    ]);
    // People are told as long as it is so, whoever waited for it once.
    const second = await node.reeve('deploy-action');
    expect([second.status, second.stdout]).toEqual([1, expect.stringContaining('its marker cannot be read')]);
    expect([node.results().length, existsSync(path)]).toEqual([2, true]);
  });

  it('of a later reeve is not run, told or written over by this one', async () => {
    const node = makeActionsNode();
    const path = await makeMarkerPath(node);
    const later = JSON.stringify({ ...(JSON.parse(readFileSync(path, 'utf8')) as object), version: 9 });
    writeFileSync(path, later);
    writeFileSync(path.replace(/json$/, 'open'), '');
    node.put('web');
    node.put('db');
    const { status, stdout } = await node.reeve('deploy-action');
    expect([status, stdout]).toEqual([1, expect.stringContaining('its marker is of a later reeve')]);
    expect([node.ran(), node.inbox(), told(node)]).toEqual([['web', 'db'], [], ['redeploy-vps-db: ']]);
    expect(readFileSync(path, 'utf8')).toBe(later);
  });

  it('that cannot be closed is an error of its own, and no bug', async () => {
    const node = makeActionsNode();
    const path = await makeMarkerPath(node);
    mkdirSync(path.replace(/json$/, 'open/x'), { recursive: true });
    node.put('db');
    const { status, stdout } = await node.reeve('deploy-action');
    expect([status, stdout]).toEqual([1, expect.stringContaining('cannot remove')]);
    expect([node.ran(), node.inbox()]).toEqual([['web', 'db'], []]);
  });
});

describe('what announces a marker that was never made', () => {
  const day = 24 * 60 * 60;
  const before = Date.now() / 1000 - day;

  it.each<[string, number, (node: ActionsNode) => string, boolean]>([
    ['goes after a day', before - 60, () => contentKey('redeploy-vps-web', 'x'), false],
    ['stays for less', before + 3600, () => contentKey('redeploy-vps-web', 'x'), true],
    [
      'stays while its file is in the mirror',
      before - 60,
      (node) => {
        mkdirSync(node.places.staging);
        writeFileSync(join(node.places.staging, 'redeploy-vps-web.json'), '{');
        return contentKey('redeploy-vps-web', '{');
      },
      true,
    ],
  ])('%s', async (_, at, prepare, isLeft) => {
    const node = makeActionsNode();
    const key = prepare(node);
    mkdirSync(node.places.markers);
    const path = join(node.places.markers, `${key}.open`);
    writeFileSync(path, '');
    utimesSync(path, at, at);
    const { status, stdout } = await node.reeve('deploy-action');
    expect([status, stdout, existsSync(path)]).toEqual([0, 'nothing to do\n', isLeft]);
  });

  it('and whose file is in the inbox is one that is begun', async () => {
    const node = makeActionsNode();
    const path = await makeMarkerPath(node);
    rmSync(path);
    const open = path.replace(/json$/, 'open');
    writeFileSync(open, '');
    utimesSync(open, before - 60, before - 60);
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect([node.ran(), node.markers(), existsSync(open)]).toEqual([
      ['web', 'web'],
      ['redeploy-vps-web reported succeeded'],
      false,
    ]);
  });
});

it('what cannot go from the quarantine after its month stays, and keeps nothing from its work', async () => {
  const node = makeActionsNode();
  mkdirSync(join(node.places.quarantine, 'mounted'), { recursive: true });
  mkdirSync(join(node.places.quarantine, 'old'));
  mountSmall(join(node.places.quarantine, 'mounted'), 'size=16k');
  const later = new Date(Date.now() + 31 * 24 * 60 * 60_000);
  await openQuarantine(actionsContext(node.root, () => later));
  expect(node.quarantine()).toEqual(['mounted']);
});
