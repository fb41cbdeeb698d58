// One-off runs on a real engine: once for as long as the container is there.
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aJobDeploy, listStarts, tick, waitForEnd } from '../../support/runs.ts';

const requestedAt = '2026-06-04T03:00:00.000Z';

async function deployJob(node: TestNode, id: string, overrides: Readonly<Record<string, unknown>> = {}) {
  await node.deploy([aJobDeploy({ service: 'once', jobRun: { id, requestedAt }, ...overrides })]);
}

describe.concurrent('a one-off run', () => {
  it('runs once, tells what became of it, and makes way for the next', async ({ onTestFinished }) => {
    const since = new Date();
    const node = makeNode({ project: 'once', onTestFinished });
    await deployJob(node, 'r1', { env: { CODE: '4' } });
    expect(await tick(node)).toEqual(['run once']);
    await waitForEnd(node, 'once');
    expect(await tick(node)).toEqual([]);
    const [run] = await node.containers();
    expect([run?.name, run?.labels['launchpad.jobRun'], run?.state]).toEqual([
      'launchpad_once_once_0',
      'r1',
      'exited',
    ]);
    expect(node.status().services).toMatchObject([
      {
        state: 'error',
        message: 'failed (exit 4)',
        desiredReplicas: 0,
        jobRun: { id: 'r1', requestedAt, startedAt: requestedAt, exitCode: 4, state: 'failed' },
      },
    ]);
    const finishedAt = node.status().services[0]?.jobRun?.finishedAt ?? '';
    expect(Math.abs(Date.now() - Date.parse(finishedAt))).toBeLessThan(60_000);
    await deployJob(node, 'r2');
    expect(await tick(node)).toEqual(['run once']);
    await waitForEnd(node, 'once');
    await tick(node);
    expect(node.status().services).toMatchObject([
      { state: 'stopped', message: 'succeeded', jobRun: { id: 'r2', exitCode: 0, state: 'succeeded' } },
    ]);
    expect(await listStarts(node.socket, 'once', since)).toEqual(['once r1', 'once r2']);
  });

  it('costs no request of its own once its end is known', async ({ onTestFinished }) => {
    const engine = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({
      project: 'known',
      socket: engine.socket,
      onTestFinished,
    });
    await deployJob(node, 'r1');
    await tick(node);
    await waitForEnd(node, 'once');
    await tick(node);
    const before = engine.lines.length;
    await tick(node);
    expect(engine.lines.slice(before).filter((line) => line.includes('/json'))).toEqual([
      expect.stringMatching(/^GET \/containers\/json/),
    ]);
    expect(node.status().services[0]?.jobRun?.finishedAt).toMatch(/Z$/);
  });

  it('waits for the one before it', async ({ onTestFinished }) => {
    const node = makeNode({ project: 'queued', onTestFinished });
    await deployJob(node, 'r1', { env: { LASTS: '600' } });
    await tick(node);
    await deployJob(node, 'r2');
    expect(await tick(node)).toEqual([]);
    expect(node.status().services).toMatchObject([
      { jobRun: { id: 'r2', state: 'pending', message: 'waiting' } },
    ]);
    expect((await node.containers()).map(({ labels }) => labels['launchpad.jobRun'])).toEqual(['r1']);
  });

  it.for([
    ['whose image cannot be had', { image: '127.0.0.1:1/none:v1' }, 'noimage'],
    ['that cannot be started', { volumes: [{ name: 'data', path: '/app/job' }] }, 'nostart'],
  ] as const)(
    '%s tells why and when it is tried again, and leaves nothing',
    async ([_, overrides, project], { onTestFinished }) => {
      const node = makeNode({ project, onTestFinished });
      await deployJob(node, 'r1', overrides);
      const end = await node.reeve('reconcile', '--json');
      expect(end.status).toBe(1);
      const [trouble] = end.json().troubles;
      expect(trouble).toMatchObject({ key: `${project}/once`, retryAt: expect.stringMatching(/Z$/) });
      expect(node.status().services).toMatchObject([
        {
          state: 'error',
          message: trouble?.message,
          jobRun: { state: 'pending', message: trouble?.message },
        },
      ]);
      expect(await node.containers()).toEqual([]);
      await deployJob(node, 'r1');
      expect(await tick(node)).toEqual(['run once']);
    },
  );
});
