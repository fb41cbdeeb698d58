// What waits for its turn, for its node, or for too long.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAction } from '../../../src/lib/deploy-runner/action.ts';
import { markerKey } from '../../../src/lib/deploy-runner/key.ts';
import { readMoment } from '../../../src/lib/host/moment.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';

/** That leaves 30 s for waiting. */
const longest = { timeout: '770s' };

/** As if it had been handed over so long ago. Gives the note that says so. */
async function age(node: ActionsNode, path: string, seconds: number): Promise<string> {
  const bytes = readFileSync(path);
  const { atMs, boot } = await readMoment({
    clock: systemClock,
    paths: { runDir: node.env['REEVE_RUN'] ?? '' },
  });
  const ms = seconds * 1000;
  const since = {
    atMs: atMs - ms,
    ...(boot === undefined ? {} : { boot: { ...boot, uptimeMs: boot.uptimeMs - ms } }),
  };
  mkdirSync(node.places.arrivals, { recursive: true });
  const note = join(node.places.arrivals, `${markerKey(parseAction(bytes), bytes)}.json`);
  writeFileSync(note, JSON.stringify({ version: 1, ...since }));
  return note;
}

/** Starts a run, and gives what it has said. */
function startRun(node: ActionsNode) {
  const run = node.start('deploy-action');
  let said = '';
  run.child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  return { ...run, said: () => said };
}

const reasons = (node: ActionsNode) => node.results().map(({ service, reason }) => [service, reason]);

describe('an approved redeploy that has waited', () => {
  it('behind others for too long is not begun, and is told so (D41)', async () => {
    const node = makeActionsNode(longest);
    const web = node.put('web');
    const note = await age(node, web, 35);
    renameSync(note, join(node.root, 'late.json'));
    await age(node, web, 5);
    // As if the one before it had taken half a minute.
    node.writeScript(`[ "$2" != queue ] || cp "$ROOT/late.json" '${note}'`);
    node.put('db');
    node.put('queue');
    const { status } = await node.reeve('deploy-action');
    expect([status, node.ran(), node.inbox()]).toEqual([1, ['db', 'queue'], []]);
    expect(reasons(node)).toEqual([
      ['db', undefined],
      ['queue', undefined],
      ['web', expect.stringMatching(/^rejected: too late to begin: it has waited ([3-5]\d(\.\d)?s|1m.*)$/)],
    ]);
    expect(readdirSync(node.places.arrivals)).toEqual([]);
  });

  it('since it was handed over, as the pull has noted (D41)', async () => {
    const node = makeActionsNode(longest);
    const source = join(node.root, 'source');
    mkdirSync(source);
    mkdirSync(join(node.root, 'events'));
    for (const service of ['web', 'db']) {
      const path = node.put(service);
      renameSync(path, join(source, basename(path)));
    }
    await node.reeve('rsync-pull');
    expect([node.inbox().length, readdirSync(node.places.arrivals).length]).toEqual([2, 2]);
    await age(node, join(node.places.inbox, 'redeploy-vps-web.json'), 31);
    await node.reeve('deploy-action');
    expect(node.ran()).toEqual(['db']);
    expect(reasons(node)).toEqual([
      ['web', expect.stringMatching(/too late to begin: it has waited [3-5]\d/)],
      ['db', undefined],
    ]);
  });
});

describe('a node that is held', () => {
  it('begins no redeploy until the hold ends, and goes on at once then', async () => {
    const node = makeActionsNode(longest);
    node.put('web');
    await node.reeve('hold', '--node', '--for', '1h', '--reason', 'a new disk');
    const run = startRun(node);
    await expect
      .poll(() => run.said(), { timeout: 20_000 })
      .toMatch(/web waits: this node is held until .*: a new disk/);
    expect([node.ran(), node.inbox().length]).toEqual([[], 1]);
    await node.reeve('hold', '--end', '--node');
    expect((await run.ended).status).toBe(0);
    expect([node.ran(), node.inbox()]).toEqual([['web'], []]);
  });

  it('refuses what has waited for too long, and says why (D41)', async () => {
    const node = makeActionsNode(longest);
    await age(node, node.put('web'), 25);
    await node.reeve('hold', '--node', '--for', '1h', '--reason', 'a new disk');
    await node.reeve('deploy-action');
    expect([node.ran(), node.inbox()]).toEqual([[], []]);
    expect(reasons(node)).toEqual([
      [
        'web',
        expect.stringMatching(
          /too late to begin: it has waited ([3-5]\d|1m).*, and this node is held until .*: a new disk/,
        ),
      ],
    ]);
  });

  it('leaves what waits where it is when it is stopped', async () => {
    const node = makeActionsNode(longest);
    node.put('web');
    await node.reeve('hold', '--node', '--for', '1h', '--reason', 'a new disk');
    const run = startRun(node);
    await expect.poll(() => run.said(), { timeout: 20_000 }).toContain('web waits');
    run.child.kill('SIGTERM');
    await run.ended;
    expect([node.ran(), node.inbox().length, node.results()]).toEqual([[], 1, []]);
  });
});

it('an approval that is handed over again during a run leaves the inbox with it', async () => {
  const node = makeActionsNode();
  const path = node.put('web');
  const text = readFileSync(path, 'utf8');
  await node.reeve('deploy-action');
  node.write('again.json', text);
  node.writeScript(`cp "$ROOT/again.json" '${path}'`);
  node.put('web');
  node.put('db');
  await node.reeve('deploy-action');
  expect([node.ran(), node.inbox()]).toEqual([['web', 'db'], []]);
});
