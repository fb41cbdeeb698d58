// What commands say and take at the edge of sense; where stdout and stderr lead never changes what is done.
import { describe, expect, inject, it } from 'vitest';
import { makeNode } from '../../support/node.ts';
import { startProcess } from '../../support/programs.ts';
import { aWebDeploy } from '../../support/services.ts';

describe.concurrent('output that nobody takes', () => {
  it('does not end a rollout when the reader of stderr has seen enough (R59)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'untold', onTestFinished });
    await node.deploy([aWebDeploy()]);
    const running = node.start(['reconcile', '--json']);
    running.child.stderr.destroy();
    const end = await running.end;
    expect([end.status, end.json().outcome]).toEqual([0, 'done']);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running', 'running']);
  });

  it('a deploy by the bundle says nothing but what it changes: what it loads late is there', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'bundle', onTestFinished });
    const end = await node.deploy([aWebDeploy()]);
    expect(end.stderr).toBe(`${node.nodeId}: add bundle/web\n`);
  });

  it('a hold takes no time beyond all dates, and keeps its reason to one line', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'held', onTestFinished });
    const endless = await node.reeve('hold', 'held/web', '--for', '99999999999d', '--reason', 'x');
    expect([endless.status, endless.stdout]).toEqual([64, '']);
    const odd = await node.reeve('hold', 'held/web', '--for', '1x', '--reason', 'x');
    expect([odd.status, odd.stderr]).toEqual([
      64,
      'reeve: "1x" is no duration: say --for 90s, 1h30m or 2d\n',
    ]);
    const end = await node.reeve('hold', 'held/web', '--for', '1h', '--reason', 'a\nb\u001b[2Jc', '--json');
    expect([end.status, end.json()]).toMatchObject([0, { holds: [{ reason: 'a b [2Jc' }] }]);
  });

  it.for([
    ['an answer on a full disk fails', 'config schema >/dev/full', 1, 'cannot print the answer: ENOSPC'],
    ['an error on a full disk keeps its exit code', 'nonsense 2>/dev/full', 64, ''],
    ['an error as JSON on a full disk is told on stderr', 'nonsense --json >/dev/full', 64, "'nonsense'"],
    ['an answer to a closed pipe is no error', 'config schema | :', 0, ''],
  ] as const)('%s', async ([, words, status, told], { expect }) => {
    const script = `set -o pipefail; ${inject('reeveBin')} ${words}`;
    const end = await startProcess('/bin/bash', ['-c', script]).ended;
    expect([end.status, end.stderr]).toEqual([status, told === '' ? '' : expect.stringContaining(told)]);
  });
});
