// The clock of the node is set while an approved redeploy waits in the inbox.

import { mkdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { makeActionsNode } from '../../support/actions-node.ts';
import { fakeClock } from '../../support/faked-clock.ts';
import { startProcess } from '../../support/programs.ts';

it.each(['+1d', '-1d', '+1826d'])(
  'D41 by %s: it has waited no longer by that, and is begun',
  async (offset) => {
    const node = makeActionsNode();
    const source = join(node.root, 'source');
    for (const name of [source, join(node.root, 'events')]) mkdirSync(name);
    const path = node.put('db');
    renameSync(path, join(source, basename(path)));
    await node.reeve('rsync-pull');
    const end = await startProcess(inject('reeveBin'), ['deploy-action'], {
      ...node.env,
      ...fakeClock(offset),
    }).ended;
    expect([end.status, node.ran(), node.inbox()]).toEqual([0, ['db'], []]);
    const [result] = node.results();
    expect(result?.status).toBe('completed');
    // It was set indeed.
    expect(Math.abs(Date.parse(result?.finishedAt ?? '') - Date.now())).toBeGreaterThan(80_000_000);
  },
);
