import { expect, it } from 'vitest';
import type { Context } from '../../../src/lib/context.ts';
import { isLockHeld } from '../../../src/lib/lock/list-locks.ts';
import { publishStatus } from '../../../src/lib/publish/status-writer.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import type { Store } from '../../../src/lib/store/store.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { createConfigHome } from '../../support/config-home.ts';

it('a store that does not answer a status gives the lock back after five seconds (L110)', async () => {
  const home = await createConfigHome('cluster: { nodeId: web-1, store: "file://ROOT/store" }\n');
  const config = await home.load();
  const ctx: Context = {
    runId: 'r1',
    command: 'reconcile',
    paths: home.paths,
    overrides: {},
    clock: systemClock,
    log: silentLog,
    signal: new AbortController().signal,
    interactive: false,
    config,
  };
  const store = { url: 'file:///slow', put: () => new Promise(() => {}) } as unknown as Store;
  const cluster = config.cluster as NonNullable<typeof config.cluster>;
  const status = aNodeStatus();
  const reeve = {
    version: 1 as const,
    nodeId: 'web-1',
    reeve: '0.1.0',
    updatedAt: new Date().toISOString(),
    desired: null,
    converged: true,
    failing: [],
    draining: [],
  };
  const started = Date.now();
  await expect(
    publishStatus({ ctx, cluster, store, nodeId: 'web-1', role: 'app' }, { status, reeve, force: true }),
  ).rejects.toThrow('cannot write "nodes/web-1/status.json" to file:///slow: no answer in 5000ms');
  expect(Date.now() - started).toBeLessThan(9000);
  expect(await isLockHeld(home.paths.locksDir, 'status')).toBe(false);
});
