// Everything that a tick remembers is damaged, and the store is a bucket: what runs goes on running, and what edges read stays.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startBucket } from '../../support/bucket.ts';
import { makeNode } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';

it.each([
  ['empty', ''],
  ['filled with NULs', '\0'.repeat(300)],
  ['cut off', '{"version":1,"services":{"x/y":{"repl'],
  ['of another shape', '{"version":1,"services":[]}'],
])(
  'every state file %s, with a bucket as the store, is rebuilt, and nothing restarts (R32, R56)',
  async (_, content) => {
    const bucket = await startBucket();
    const node = makeNode({ project: 'bucket', cluster: bucket.settings, env: bucket.env });
    const shardKey = `nodes/edge-1/upstream/${node.nodeId}.json`;
    await bucket.write(`nodes/${node.nodeId}/node.json`, { nodeId: node.nodeId, role: 'app' });
    await bucket.write('nodes/edge-1/node.json', { nodeId: 'edge-1', role: 'edge' });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const before = await node.containers();
    const shard = (await bucket.read(shardKey)) as { backends: unknown[] };
    expect([before.length, shard.backends.length]).toEqual([1, 1]);

    const files = readdirSync(node.stateDir).filter((file) => /^[a-z-]+\.json$/.test(file));
    expect(files).toEqual(
      expect.arrayContaining(['rollouts.json', 'ports.json', 'shards.json', 'published.json']),
    );
    for (const file of files) {
      node.writeState(file, content);
      rmSync(join(node.stateDir, `${file}.previous`), { force: true });
    }
    bucket.takeAsked();
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions]).toEqual([0, []]);
    expect(end.stderr).toMatch(/warning: state file lost: .*rollouts\.json/);
    expect(await node.containers()).toEqual(before);
    expect(await bucket.read(shardKey)).toMatchObject({ backends: shard.backends });
    expect(bucket.takeAsked().filter((asked) => asked.startsWith('DELETE'))).toEqual([]);

    // And it goes on from there.
    await node.deploy([aWebDeploy({ replicas: 1, image: 'reeve-demo/web:v2' })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ image }) => image)).toEqual(['reeve-demo/web:v2']);
    expect(((await bucket.read(shardKey)) as { backends: unknown[] }).backends).toHaveLength(1);
  },
);
