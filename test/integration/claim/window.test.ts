// What ends a window before its time, and what it still waits for.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import { makeClaimNode } from '../../support/claim-node.ts';

it('ends at once, and with 78, where what is wrong is ours to mend', async () => {
  const node = await makeClaimNode();
  rmSync(join(node.root, 'etc/token'));
  const startedAtMs = Date.now();
  const end = await node.reeve('claim', '--window', '60');
  expect([end.status, node.ploy.state.requests.length]).toEqual([78, 0]);
  expect(end.stderr).toContain(join(node.root, 'etc/token'));
  expect(Date.now() - startedAtMs).toBeLessThan(30_000);
});

it('P55 goes on asking while the server is away, and says so with 69', async () => {
  const node = await makeClaimNode();
  node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 503 });
  const end = await node.reeve('claim', '--window', '10');
  expect(end.status).toBe(69);
  expect(node.ploy.requestsTo('claim').length).toBeGreaterThanOrEqual(3);
});

it('P7 waits for the processes of its jobs where it ends because no slot can be asked for', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob({ command: 'echo begun; sleep 4' });
  const program = node.start('claim', '--window', '60');
  await node.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  // Nothing can be renamed over a directory, which can be made while nothing is asked.
  await until(() => makesDirectory(join(node.root, 'run/claiming')));
  // Told at its end, when its lock and its record go.
  await program.waitFor('run/claiming');
  expect(job.completions).toMatchObject([{ status: 'Success' }]);
  expect((await program.ended).status).toBe(78);
});

function makesDirectory(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}
