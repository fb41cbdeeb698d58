// What a killed deploy-action has left running: ended before anything is deployed beside it, and only if it is that.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Marker } from '../../../src/lib/actions/markers.ts';
import { readStartTime } from '../../../src/lib/host/processes.ts';
import { type ActionsNode, makeActionsNode } from '../../support/actions-node.ts';
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

/** A deploy of web that was begun, whose runner is gone. Gives the number of the group that it has left. */
async function leaveDeploy(node: ActionsNode): Promise<number> {
  node.put('web');
  const first = node.start('deploy-action');
  await until(() => {
    const state = readMarker(node)?.state;
    return state !== undefined && 'group' in state && existsSync(join(node.root, 'pid'));
  });
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  const group = Number(readFileSync(join(node.root, 'pid'), 'utf8'));
  onTestFinished(() => {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It was ended.
    }
  });
  return group;
}

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

  it('is let alone where its marker is of another boot: by now it is another’s', async () => {
    const node = makeActionsNode();
    node.writeScript('echo $$ > $ROOT/pid; while :; do sleep 0.05; done');
    const group = await leaveDeploy(node);
    writeFileSync(join(node.root, 'run/boot'), 'another\n');
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(node.results()).toMatchObject([
      { status: 'failed', reason: 'unknown: interrupted: the process that ran it is gone' },
    ]);
    expect(readStartTime(group)).toBeDefined();
  });
});
