// A database service: its container is replaced stop-first, as two engines on one volume would corrupt it.
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type TestNode } from '../../support/node.ts';

function aDatabaseDeploy(overrides: Readonly<Record<string, unknown>> = {}): object {
  return {
    service: 'db',
    image: 'reeve-demo/box:v1',
    memory: 64,
    database: { engine: 'postgres', version: '15' },
    volumes: [{ name: 'data', path: '/data' }],
    rollout: { stopGrace: '5s' },
    ...overrides,
  };
}

async function startDatabase(node: TestNode): Promise<void> {
  await node.deploy([aDatabaseDeploy()]);
  expect((await node.reeve('reconcile')).status).toBe(0);
}

/** The most containers of the service that ran at once since an instant, as the engine's own events tell it. */
async function mostAtOnce({ nodeId }: TestNode, since: string): Promise<number> {
  const events = await askDocker(engineSocket(), [
    ...['events', '--since', since, '--until', new Date().toISOString()],
    ...['--filter', `label=reeve.node=${nodeId}`, '--filter', 'event=start', '--filter', 'event=die'],
    ...['--format', '{{.Action}} {{.ID}}'],
  ]);
  const running = new Set<string>();
  let most = 0;
  for (const [, action, id] of events.matchAll(/^(start|die) (\w+)$/gm)) {
    if (action === 'start') running.add(String(id));
    else running.delete(String(id));
    most = Math.max(most, running.size);
  }
  return most;
}

describe.concurrent('a database', () => {
  it('is stopped before its successor is made, and the volume moves over (R37, L143)', async ({
    onTestFinished,
  }) => {
    const since = new Date().toISOString();
    const node = makeNode({ project: 'moved', onTestFinished });
    await startDatabase(node);
    const [old] = await node.containers();
    await askDocker(engineSocket(), ['exec', String(old?.id), 'sh', '-c', 'echo precious > /data/rows']);
    await node.deploy([aDatabaseDeploy({ env: { TUNING: 'on' } })]);
    const plan = await node.reeve('plan');
    expect([plan.status, plan.stdout]).toEqual([2, expect.stringContaining('stop-first rollout moved/db')]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions.map(({ action }) => action)]).toEqual([
      0,
      ['prepare', 'stop', 'create', 'serve', 'remove'],
    ]);
    const [replaced, ...others] = await node.containers();
    expect([replaced?.id === old?.id, replaced?.state, others]).toEqual([false, 'running', []]);
    expect(replaced?.mounts).toEqual([{ name: 'launchpadvol_moved_db_data', path: '/data' }]);
    expect(await askDocker(engineSocket(), ['exec', String(replaced?.id), 'cat', '/data/rows'])).toBe(
      'precious\n',
    );
    expect(await mostAtOnce(node, since)).toBe(1);
  });

  it('whose new release fails is the same container again (R12, R37)', async ({ onTestFinished }) => {
    const since = new Date().toISOString();
    const node = makeNode({ project: 'restored', onTestFinished });
    await startDatabase(node);
    const [old] = await node.containers();
    await node.deploy([aDatabaseDeploy({ image: 'reeve-demo/web:crash' })]);
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().troubles[0]?.message]).toEqual([
      1,
      expect.stringContaining('DATABASE_URL is not set'),
    ]);
    expect((await node.containers()).map(({ id, state }) => ({ id, state }))).toEqual([
      { id: old?.id, state: 'running' },
    ]);
    expect(await mostAtOnce(node, since)).toBe(1);
    const again = await node.reeve('reconcile', '--json');
    expect([again.status, again.json().actions]).toEqual([1, []]);
  });

  it.for([2, 3])(
    'killed after step %i of its rollout never runs twice (R37, L32)',
    async (steps, { onTestFinished }) => {
      const since = new Date().toISOString();
      const node = makeNode({ project: `killed-${steps}`, onTestFinished });
      await startDatabase(node);
      await node.deploy([aDatabaseDeploy({ env: { TUNING: 'on' } })]);
      const run = node.start(['reconcile']);
      await run.waitFor(`${['prepare', 'stop', 'create'][steps - 1]} ${node.project}/db`);
      run.child.kill('SIGKILL');
      await run.ended;
      const next = await node.reeve('reconcile', '--json');
      expect([next.status, next.json().troubles]).toEqual([0, []]);
      const containers = await node.containers();
      expect(containers.map(({ state, env }) => [state, env.includes('TUNING=on')])).toEqual([
        ['running', true],
      ]);
      expect(await mostAtOnce(node, since)).toBe(1);
    },
  );
});
