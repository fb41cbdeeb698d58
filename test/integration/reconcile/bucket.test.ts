// A node whose store is a bucket: the same ticks, and no more requests than they need.
import { expect, it } from 'vitest';
import type { NodeStatus, UpstreamShard } from '../../../src/lib/cluster/wire.ts';
import { type Bucket, startBucket } from '../../support/bucket.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';

async function makeBucketNode(): Promise<{ bucket: Bucket; node: TestNode; prefix: string }> {
  const bucket = await startBucket();
  const cluster = { ...bucket.settings, intervals: { edge: '250ms' } };
  const node = makeNode({ project: 'bucketed', cluster, env: bucket.env });
  const prefix = `nodes/${node.nodeId}`;
  await bucket.write(`${prefix}/node.json`, { nodeId: node.nodeId, role: 'app' });
  await bucket.write('nodes/edge-1/node.json', { nodeId: 'edge-1', role: 'edge' });
  return { bucket, node, prefix };
}

it('deploys, rolls out and publishes in a bucket, and then asks for the desired state alone', async () => {
  const { bucket, node, prefix } = await makeBucketNode();
  for (const image of ['reeve-demo/web:v1', 'reeve-demo/web:v2']) {
    await node.deploy([aWebDeploy({ image })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().outcome]).toEqual([0, 'done']);
    const images = (await node.containers()).map((container) => container.image);
    expect(images).toEqual([image, image]);
    const status = (await bucket.read(`${prefix}/status.json`)) as NodeStatus;
    expect(status.services).toMatchObject([{ image, state: 'running', runningReplicas: 2 }]);
    const shard = (await bucket.read(`nodes/edge-1/upstream/${node.nodeId}.json`)) as UpstreamShard;
    const ports = status.services[0]?.replicas.map(({ hostPort }) => hostPort);
    expect(shard.backends.map(({ hostPort }) => hostPort).sort()).toEqual(ports?.sort());
  }
  bucket.takeAsked();
  const idle = await node.reeve('reconcile', '--json');
  expect([idle.status, idle.json().outcome]).toEqual([0, 'nothing-to-do']);
  expect(bucket.takeAsked()).toEqual([`GET ${prefix}/desired.json`]);
});

it('leaves everything as it is while the bucket cannot be reached, says so, and goes on afterwards', async () => {
  const { bucket, node, prefix } = await makeBucketNode();
  await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v1' })]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  const before = await node.containers();
  await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2' })]);
  bucket.proxy.fault = () => ({ kind: 'reset' });
  const away = await node.reeve('reconcile');
  expect(away.status).toBe(69);
  expect(away.stderr).toContain(`cannot read "${prefix}/desired.json" in store "s3://state": `);
  expect(await node.containers()).toEqual(before);
  bucket.proxy.fault = () => undefined;
  expect((await node.reeve('reconcile')).status).toBe(0);
  expect((await node.containers()).map(({ image }) => image)).toEqual([
    'reeve-demo/web:v2',
    'reeve-demo/web:v2',
  ]);
});

it('takes no bucket at all for a mistake in the configuration, and removes nothing', async () => {
  const { bucket, node } = await makeBucketNode();
  await node.deploy([aWebDeploy()]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  const before = await node.containers();
  const body = '<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>';
  bucket.proxy.fault = () => ({ kind: 'answer', status: 404, body });
  const end = await node.reeve('reconcile');
  expect(end.status).toBe(78);
  expect(end.stderr).toContain('there is no bucket "state"');
  expect(await node.containers()).toEqual(before);
});
