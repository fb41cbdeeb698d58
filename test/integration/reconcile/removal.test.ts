// Services that vanish: let through where deploy has announced it or a person says so, braked where it looks like an accident.
import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { aService } from '../../support/builders.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWorkerDeploy } from '../../support/services.ts';
import { digestTree } from '../../support/tree.ts';

const names = ['api', 'mail', 'queue', 'worker'];

const workersOf = ({ project }: TestNode): DesiredService[] =>
  names.map((service) =>
    aService({
      project,
      service,
      image: 'reeve-demo/worker:v1',
      memory: 64,
      rollout: { maxSurge: 1, drainTimeout: '0s', stopGrace: '5s' },
    }),
  );

async function runWorkers(node: TestNode): Promise<void> {
  await node.deploy(names.map((service) => aWorkerDeploy({ service })));
  expect((await node.reeve('reconcile')).status).toBe(0);
  expect(await node.containers()).toHaveLength(4);
}

describe.concurrent('a desired state that has lost most services', () => {
  it('removes none of them, exits 1 and names the way out, which then works', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'braked', onTestFinished });
    await runWorkers(node);
    const before = await node.containers();
    node.writeDesired(workersOf(node).slice(3));
    const braked = await node.reeve('reconcile', '--json');
    expect([braked.status, braked.json().actions]).toEqual([1, []]);
    expect(braked.json().troubles).toEqual(
      ['api', 'mail', 'queue'].map((service) => ({
        key: `braked/${service}`,
        message:
          'desired state drops 3 of 4 running services without an announcement by deploy: kept; if that is meant, run `reeve reconcile --allow-removal`',
      })),
    );
    expect(await node.containers()).toEqual(before);
    const allowed = await node.reeve('reconcile', '--allow-removal', '--json');
    expect([allowed.status, allowed.json().troubles]).toEqual([0, []]);
    expect((await node.containers()).map(({ name }) => name)).toEqual(['launchpad_braked_worker_0']);
  });

  it('goes on with a removal that was let through and then killed, without being told again', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'resumed', onTestFinished });
    await runWorkers(node);
    node.writeDesired(workersOf(node).slice(3));
    const run = node.start(['reconcile', '--allow-removal']);
    await run.waitFor('stop resumed/');
    run.child.kill('SIGKILL');
    await run.ended;
    const next = await node.reeve('reconcile', '--json');
    expect([next.status, next.json().troubles]).toEqual([0, []]);
    expect((await node.containers()).map(({ name }) => name)).toEqual(['launchpad_resumed_worker_0']);
  });

  it('is let through where deploy --remove has announced it', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'announced', onTestFinished });
    await runWorkers(node);
    const refused = await node.reeve('deploy', '--remove', 'announced');
    expect([refused.status, refused.stderr]).toEqual([64, expect.stringContaining('--yes')]);
    const removed = await node.reeve('deploy', '--remove', 'announced', '--yes');
    expect(removed.status).toBe(0);
    expect(node.desired().services).toEqual([]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles]).toEqual([0, []]);
    expect(await node.containers()).toEqual([]);
  });
});

describe.concurrent('a missing desired state', () => {
  it('is no empty one: nothing is done (R9)', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'absent', onTestFinished });
    await runWorkers(node);
    const before = await node.containers();

    rmSync(`${node.storeDir}/nodes/${node.nodeId}/desired.json`);
    const state = digestTree(node.stateDir);
    const end = await node.reeve('reconcile', '--json', '--allow-removal');
    expect([end.status, end.json().actions]).toEqual([0, []]);
    expect(await node.containers()).toEqual(before);
    expect(digestTree(node.stateDir)['rollouts.json']).toEqual(state['rollouts.json']);
  });
});
