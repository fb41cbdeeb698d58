// deploy-action killed at every point: whatever was under way, at most one deploy, exactly one result and one end, and a run after
// that which does nothing.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import type { Marker } from '../../../src/lib/actions/markers.ts';
import { listOpenKeys } from '../../../src/lib/actions/markers.ts';
import { readStartTime } from '../../../src/lib/host/processes.ts';
import { actionsContext } from '../../support/actions-context.ts';
import { type ActionsNode, makeActionsNode, readPid } from '../../support/actions-node.ts';
import { until } from '../../support/balanced.ts';
import { attemptAtCalls, fileCalls, runUnderFault } from '../../support/faults.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';

const isAlive = (pid: number): boolean => readStartTime(pid) !== undefined;

/** The next run settles all; the one after that finds nothing to do. Gives the one result's status. */
async function settle(node: ActionsNode): Promise<string> {
  await node.reeve('deploy-action', '--wait', '20');
  const seen = [node.ran(), node.results(), node.markers(), node.quarantine()];
  const last = await node.reeve('deploy-action');
  expect([last.status, last.stdout]).toEqual([0, 'nothing to do\n']);
  expect([node.ran(), node.results(), node.markers(), node.quarantine()]).toEqual(seen);
  expect(node.inbox()).toEqual([]);
  expect(await listOpenKeys(actionsContext(node.root))).toEqual([]);
  expect(readdirSync(node.places.markers).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  expect(node.results()).toHaveLength(1);
  const [marker = ''] = node.markers();
  const [result] = node.results();
  const outcome = marker.split(' ')[2];
  expect(marker).toMatch(/ reported (succeeded|rejected|unknown|failed)$/);
  expect(result?.status).toBe(outcome === 'succeeded' ? 'completed' : 'failed');
  return outcome ?? '';
}

const killed = [
  ['rename', fileCalls.rename],
  ['link', fileCalls.link],
  ['unlink', fileCalls.unlink],
  ['sync', fileCalls.sync],
] as const;

describe('deploy-action, killed at each call that changes the disk (O70),', () => {
  it.each(killed)(
    'at every %s, deploys at most once and tells one end',
    async (_, calls) => {
      const outcomes = new Set<string>();
      const { hits, calls: seen } = await attemptAtCalls(async (n) => {
        const node = makeActionsNode();
        node.put('web');
        const command = [inject('reeveBin'), 'deploy-action'];
        const run = await runUnderFault(command, node.env, { calls, effect: 'signal=KILL' }, n);
        const ran = node.ran().length;
        outcomes.add(`ran ${ran} ${await settle(node)}`);
        expect(node.ran().length).toBeLessThanOrEqual(1);
        rmSync(node.root, { recursive: true });
        return run;
      });
      expect(seen).toBeGreaterThan(2);
      expect(hits).toBeGreaterThan(1);
      // Before it began it is run; once it ended its end is known; between the two nobody knows.
      for (const outcome of outcomes) {
        expect(['ran 0 succeeded', 'ran 0 unknown', 'ran 1 unknown', 'ran 1 succeeded']).toContain(outcome);
      }
      expect(outcomes).toContain('ran 1 succeeded');
    },
    400_000,
  );

  it.each(killed)(
    'at every %s, refuses with one result',
    async (_, calls) => {
      const { hits } = await attemptAtCalls(async (n) => {
        const node = makeActionsNode();
        node.put('web', { node: 'pi' });
        const command = [inject('reeveBin'), 'deploy-action'];
        const run = await runUnderFault(command, node.env, { calls, effect: 'signal=KILL' }, n);
        expect(await settle(node)).toBe('rejected');
        expect(node.ran()).toEqual([]);
        rmSync(node.root, { recursive: true });
        return run;
      });
      expect(hits).toBeGreaterThan(0);
    },
    400_000,
  );
});

describe('deploy-action, where one call that changes the disk fails,', () => {
  it.each([
    ['rename', fileCalls.rename],
    ['sync', fileCalls.sync],
  ])(
    'be it any %s, tells one result of one deploy',
    async (_, calls) => {
      const outcomes = new Set<string>();
      const { hits, calls: seen } = await attemptAtCalls(async (n) => {
        const node = makeActionsNode();
        node.put('web');
        const command = [inject('reeveBin'), 'deploy-action'];
        const run = await runUnderFault(command, node.env, { calls, effect: 'error=ENOSPC' }, n);
        outcomes.add(await settle(node));
        expect(node.ran()).toEqual(['web']);
        rmSync(node.root, { recursive: true });
        return run;
      });
      expect(seen).toBeGreaterThan(2);
      expect(hits).toBeGreaterThan(1);
      // Whoever waits for room knows how it ended.
      expect([...outcomes]).toEqual(['succeeded']);
    },
    400_000,
  );
});

describe('deploy-action, found', () => {
  it('with an action that was begun while nobody is at it, tells that its end is unknown and ends what is left (R37)', async () => {
    const node = makeActionsNode();
    node.writeScript('echo $$ > $ROOT/pid; while :; do sleep 0.1; done');
    node.put('web');
    const first = node.start('deploy-action');
    await until(() => readPid(node) > 0);
    const script = readPid(node);
    const [name = ''] = readdirSync(node.places.markers).filter((one) => one.endsWith('.json'));
    const read = (): Marker => JSON.parse(readFileSync(join(node.places.markers, name), 'utf8')) as Marker;
    await until(() => 'group' in read().state);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(isAlive(script)).toBe(true);
    expect(await settle(node)).toBe('unknown');
    await until(() => !isAlive(script));
    expect(node.results()[0]?.reason).toBe('unknown: interrupted: the process that ran it is gone');
    expect(node.ran()).toEqual(['web']);
  });

  const states: [string, (state: Marker['state'], node: ActionsNode) => Marker['state'], string][] = [
    [
      'started',
      ({ kind: _, ...state }) => ({ kind: 'started', startedAt: (state as { startedAt: string }).startedAt }),
      'unknown',
    ],
    [
      'ended, and its result not in the outbox',
      (state, node) => {
        const { eventName } = state as { eventName: string };
        const event = readFileSync(join(node.places.outbox, eventName), 'utf8');
        rmSync(join(node.places.outbox, eventName));
        return { ...(state as object), kind: 'ended', event } as Marker['state'];
      },
      'succeeded',
    ],
    [
      'ended, and its result in the outbox',
      (state, node) => {
        const { eventName } = state as { eventName: string };
        const event = readFileSync(join(node.places.outbox, eventName), 'utf8');
        return { ...(state as object), kind: 'ended', event } as Marker['state'];
      },
      'succeeded',
    ],
    ['reported, and its file in the inbox', (state) => state, 'succeeded'],
  ];

  it.each(states.flatMap((row) => [['in', ...row] as const, ['out of', ...row] as const]))(
    'with its file %s the inbox and its marker %s, does not run it again (D36, O70)',
    async (place, _, change, outcome) => {
      const node = makeActionsNode();
      node.put('web');
      await node.reeve('deploy-action');
      const [name = ''] = readdirSync(node.places.markers);
      const path = join(node.places.markers, name);
      const marker = JSON.parse(readFileSync(path, 'utf8')) as Marker;
      const state = change(marker.state, node);
      if (state.kind === 'started') rmSync(node.places.outbox, { recursive: true });
      writeFileSync(path, JSON.stringify({ ...marker, state }));
      writeFileSync(path.replace(/json$/, 'open'), '');
      if (place === 'in') node.put('web');
      expect(await settle(node)).toBe(outcome);
      expect(node.ran()).toEqual(['web']);
    },
  );

  it.each([
    ['empty', ''],
    ['cut', '{"version":1,"act'],
    ['of NULs', '\0'.repeat(100)],
  ])('with a marker that is %s, does not run it again, and says that its end is unknown', async (_, text) => {
    const node = makeActionsNode();
    node.put('web');
    await node.reeve('deploy-action');
    rmSync(node.places.outbox, { recursive: true });
    const [name = ''] = readdirSync(node.places.markers);
    writeFileSync(join(node.places.markers, name), text);
    node.put('web');
    expect(await settle(node)).toBe('unknown');
    expect(node.ran()).toEqual(['web']);
  });
});

function mountState(node: ActionsNode): void {
  rmSync(join(node.root, 'state'), { recursive: true });
  mountSmall(join(node.root, 'state'), 'size=1m');
  mkdirSync(node.places.inbox, { recursive: true });
}

describe('a full disk', () => {
  it('runs nothing that could not be written down, and all of it later', async () => {
    const node = makeActionsNode();
    mountState(node);
    node.put('web');
    const makeRoom = fillDisk(join(node.root, 'state'));
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect([node.ran(), node.inbox(), node.markers()]).toEqual([[], ['redeploy-vps-web.json'], []]);
    makeRoom();
    expect(await settle(node)).toBe('succeeded');
    expect(node.ran()).toEqual(['web']);
  });

  it('that its script has filled delays the result, and costs it nothing', async () => {
    const node = makeActionsNode();
    mountState(node);
    node.writeScript('dd if=/dev/zero of=$ROOT/state/filler bs=4096 2>/dev/null; echo filled');
    node.put('web');
    const running = node.start('deploy-action');
    await running.waitFor('waits for its record');
    expect(node.results()).toEqual([]);
    rmSync(join(node.root, 'state/filler'));
    expect((await running.ended).status).toBe(0);
    expect(node.results()).toMatchObject([{ status: 'completed', outputTail: 'filled\n' }]);
    expect(await settle(node)).toBe('succeeded');
  });

  it('that stays full leaves an action that was begun, whose end is unknown once there is room', async () => {
    const node = makeActionsNode();
    mountState(node);
    node.writeScript('dd if=/dev/zero of=$ROOT/state/filler bs=4096 2>/dev/null; echo filled');
    node.put('web');
    const running = node.start('deploy-action');
    await running.waitFor('waits for its record');
    running.child.kill('SIGTERM');
    await running.ended;
    expect([node.results(), node.inbox()]).toEqual([[], ['redeploy-vps-web.json']]);
    rmSync(join(node.root, 'state/filler'));
    expect(await settle(node)).toBe('unknown');
    expect(node.ran()).toEqual(['web']);
  });
});
