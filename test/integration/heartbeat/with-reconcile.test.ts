// Heartbeats between real ticks: who writes the status when, and what it says of the machine.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWorkerDeploy } from '../../support/services.ts';

const inode = (node: TestNode): number =>
  statSync(join(node.storeDir, `nodes/${node.nodeId}/status.json`)).ino;

describe('a status', () => {
  it('has a host sample from the first tick on, and ticks keep a heartbeat’s (L112, L115)', async () => {
    const node = makeNode();
    await node.deploy([aWorkerDeploy()]);
    await node.reeve('reconcile');
    expect(node.status().host).toEqual({
      cpuPercent: expect.any(Number),
      memoryUsedMb: expect.any(Number),
      memoryTotalMb: expect.any(Number),
      sampledAt: expect.any(String),
    });
    await node.reeve('heartbeat');
    const { host } = node.status();
    await node.deploy([aWorkerDeploy({ image: 'reeve-demo/worker:v2' })]);
    await node.reeve('reconcile');
    expect(node.status().host).toEqual(host);
  });

  it('is written for liveness by the heartbeat, and then by no tick (L106-L108)', async () => {
    // Every write is due for liveness after five seconds.
    const livenessMs = 5_000;
    const node = makeNode({ cluster: { intervals: { liveness: '5s', edge: '250ms' } } });
    await node.deploy([aWorkerDeploy()]);
    await node.reeve('reconcile');
    const written = Date.parse(node.status().lastSeen);
    await expect.poll(() => Date.now() - written, { timeout: 60_000 }).toBeGreaterThan(livenessMs);
    const before = inode(node);
    const beat = await node.reeve('heartbeat');
    expect([beat.status, inode(node) === before]).toEqual([0, false]);
    const [service] = node.status().services;
    expect(service).toMatchObject({ state: 'running', updatedAt: node.status().lastSeen });
    const after = inode(node);
    const beatAtMs = Date.parse(node.status().lastSeen);
    await node.reeve('reconcile');
    // Where the tick took as long, it was right to write.
    if (Date.now() - beatAtMs < livenessMs) expect(inode(node)).toBe(after);
  });
});
