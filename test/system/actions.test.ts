// Approved redeploys between two booted machines: a person approves on the control host, and nobody types on the node.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeHost, tellFigure } from '../support/system.ts';
import { checkout, startTwoHosts, type TwoHosts } from '../support/two-hosts.ts';

describeHost('two machines with actions', () => {
  let hosts: TwoHosts;
  beforeAll(async () => {
    hosts = await startTwoHosts();
  }, 300_000);
  afterAll(() => hosts?.stop());

  it('recreate a container with unchanged config, with nobody typing on the node (D1, D11, D27)', async () => {
    await hosts.addService('blog', ['volumes: ["./data:/data"]']);
    const before = await hosts.container('blog');
    const id = await hosts.propose('blog');
    const startedAtMs = performance.now();
    await hosts.approve(id);
    expect(await hosts.settled(id)).toBe('completed');
    const tookS = (performance.now() - startedAtMs) / 1000;
    tellFigure(`from an approval on the control host to its completion there: ${tookS.toFixed(1)} s`);
    const after = await hosts.container('blog');
    expect(after.id).not.toBe(before.id);
    // As a hand-run deploy has them (D13, D14).
    expect({ project: after.project, mounts: after.mounts }).toEqual({
      project: before.project,
      mounts: [`${checkout}/services/blog/data`],
    });
    expect((await hosts.read(id)).transition_history.map(({ to }) => to)).toEqual([
      'approved',
      'running',
      'completed',
    ]);
  }, 240_000);
});
