// What a killed deploy-action has left running: ended before anything is deployed beside it, and only if it is that.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Marker } from '../../../src/lib/actions/markers.ts';
import { nameProcess, readStartTime } from '../../../src/lib/host/processes.ts';
import { type ActionsNode, makeActionsNode, readPid } from '../../support/actions-node.ts';
import { onTestFinished } from '../../support/after-test.ts';
import { until } from '../../support/balanced.ts';

const approvedAgain = {
  transition_history: [{ from: 'pending', to: 'approved', timestamp: 1_785_800_000, by: 'operator-tg-7' }],
};

function readMarker(node: ActionsNode): Marker | undefined {
  const [name] = existsSync(node.places.markers)
    ? readdirSync(node.places.markers).filter((one) => one.endsWith('.json'))
    : [];
  return name === undefined
    ? undefined
    : (JSON.parse(readFileSync(join(node.places.markers, name), 'utf8')) as Marker);
}

function writeState(node: ActionsNode, more: object): void {
  const marker = readMarker(node) as Marker;
  const path = join(node.places.markers, `${marker.key}.json`);
  writeFileSync(path, JSON.stringify({ version: 1, ...marker, state: { ...marker.state, ...more } }));
}

/** A deploy of web that was begun, whose runner is gone. Gives the number of the group that it has left. */
async function leaveDeploy(node: ActionsNode): Promise<number> {
  node.put('web');
  const first = node.start('deploy-action');
  await until(() => {
    const state = readMarker(node)?.state;
    return state !== undefined && 'group' in state && readPid(node) > 0;
  });
  first.child.kill('SIGKILL');
  await first.ended;
  const group = readPid(node);
  onTestFinished(() => {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It was ended.
    }
  });
  return group;
}

describe('what a deploy has started', () => {
  it('is killed at its deadline, also where it has left its group (D41)', async () => {
    const node = makeActionsNode({ timeout: '8s', verify_timeout: '1s' });
    node.writeScript(`
setsid sh -c 'trap "" TERM; echo $$ > $0/pid; while :; do sleep 0.05; done' $ROOT > /dev/null 2>&1 &
while :; do sleep 0.05; done`);
    node.put('web');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results().map(({ reason }) => reason)).toEqual(['timeout: no end within 8s']);
    const left = readPid(node);
    expect(left).toBeGreaterThan(0);
    onTestFinished(() => {
      if (readStartTime(left) !== undefined) process.kill(left, 'SIGKILL');
    });
    expect(readStartTime(left)).toBeUndefined();
  });
});

describe('what a killed run has left', () => {
  it('is gone, all of it, before the next deploy of its service begins (R37)', async () => {
    const node = makeActionsNode();
    // The leader is gone by SIGTERM at once; what it has started is still at it for a while.
    node.writeScript(`
[ -e $ROOT/pid ] && { [ -e $ROOT/over ] && echo alone || echo beside; exit; }
sh -c 'trap "sleep 1; touch $0/over; exit" TERM; echo $1 > $0/pid; while :; do sleep 0.05; done' $ROOT $$ > /dev/null 2>&1 & wait`);
    const group = await leaveDeploy(node);
    node.put('web', approvedAgain);
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results().map(({ status, outputTail }) => [status, outputTail])).toEqual([
      ['failed', undefined],
      ['completed', 'alone\n'],
    ]);
    expect(readStartTime(group)).toBeUndefined();
  });

  it.each<[string, (node: ActionsNode, group: number) => Promise<void>]>([
    [
      'without its leader, which was killed itself',
      async (_, group) => {
        process.kill(group, 'SIGKILL');
        await until(() => readStartTime(group) === undefined);
      },
    ],
    [
      'without its name in the marker, which was killed before',
      async (node) => writeState(node, { group: undefined }),
    ],
    [
      'with a marker that has been damaged since',
      async (node) => writeFileSync(join(node.places.markers, `${readMarker(node)?.key}.json`), ''),
    ],
  ])('is gone before the next deploy of its service begins, also %s', async (_, change) => {
    const node = makeActionsNode();
    node.writeScript(`
[ -e $ROOT/pid ] && { [ -e $ROOT/over ] && echo alone || echo beside; exit; }
sh -c 'trap "touch $0/over; exit" TERM; echo $1 > $0/pid; while :; do sleep 0.05; done' $ROOT $$ > /dev/null 2>&1 & wait`);
    const group = await leaveDeploy(node);
    await change(node, group);
    node.put('web', approvedAgain);
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results().map(({ outputTail }) => outputTail)).toEqual([undefined, 'alone\n']);
  });

  it.each([
    ['let alone where it is of another boot: by now it is another’s', 'another', true],
    ['ended where it is of this boot', undefined, false],
  ])('a group that the marker names is %s', async (_, otherBoot, isLeft) => {
    const node = makeActionsNode();
    node.writeScript('echo $$ > $ROOT/pid; while :; do sleep 0.05; done');
    process.kill(-(await leaveDeploy(node)), 'SIGKILL');
    const stranger = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' });
    onTestFinished(() => void stranger.kill('SIGKILL'));
    const pid = stranger.pid ?? 0;
    const bootId = otherBoot ?? readFileSync(join(node.root, 'run/boot'), 'utf8').trim();
    writeState(node, { group: nameProcess(pid, bootId) });
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results()).toMatchObject([
      { status: 'failed', reason: 'unknown: interrupted: the process that ran it is gone' },
    ]);
    expect(readStartTime(pid) !== undefined).toBe(isLeft);
  });
});
