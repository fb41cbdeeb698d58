// What edges are told when the desired state, or a service in it, cannot be read: what still runs stays reachable.
import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';

async function runTwo(node: TestNode): Promise<void> {
  const web = { replicas: 1 };
  await node.deploy([aWebDeploy(web), aWebDeploy({ ...web, service: 'shop' })]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  expect(node.shard().backends).toHaveLength(2);
}

describe.concurrent('the routing of services that run', () => {
  it('stays as it is where the desired state is missing (R9, L26)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'gone', onTestFinished });
    await runTwo(node);
    const before = node.shard();
    rmSync(`${node.storeDir}/nodes/${node.nodeId}/desired.json`);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(node.shard()).toEqual(before);
  });

  it('stays where a service’s own route cannot be read', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'unread', onTestFinished });
    await runTwo(node);
    const before = node.shard().backends;
    const broken = node
      .desired()
      .services.map((service) =>
        service.service === 'shop' ? { ...service, ingress: { ...service.ingress, port: 0 } } : service,
      );
    node.writeDesired(broken as DesiredService[]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles.map(({ key }) => key)]).toEqual([1, ['unread/shop']]);
    expect(node.shard().backends).toEqual(before);
  });

  it('stays for every container that may be the one of a service without a name', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'unnamed', onTestFinished });
    await runTwo(node);
    const before = node.shard().backends;
    node.writeDesired(
      node.desired().services.map(({ project: _, ...service }) => service) as unknown as DesiredService[],
    );
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([1, []]);
    expect(node.shard().backends).toEqual(before);
  });
});
