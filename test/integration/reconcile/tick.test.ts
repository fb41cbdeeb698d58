// What one tick of a node is seen to do, from outside: in which order, what it writes, and what it says when it cannot.
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeNode } from '../../support/node.ts';
import { aWebDeploy, aWorkerDeploy } from '../../support/services.ts';

const debugged = { LAUNCHPAD_DEBUG_S3: '1' };

function linesOf(text: string, pattern: RegExp): string[] {
  return text.split('\n').filter((line) => pattern.test(line));
}

describe.concurrent('a tick', () => {
  it('reads the desired state, then the engine; edges and readers hear of what runs (L2, L18, L29)', async ({
    onTestFinished,
  }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'order', onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    const place = (name: string): string => join(node.storeDir, 'nodes', node.nodeId, name);
    let published: unknown[] = [];
    proxy.beforeRequest = (line) => {
      // It has been read by now: that it is gone changes nothing for this look. A slow run reads it again later.
      if (proxy.lines.length <= 1) renameSync(place('desired.json'), place('moved.json'));
      if (line !== 'POST /containers/create') return;
      published = node.shard().backends;
      renameSync(place('moved.json'), place('desired.json'));
    };
    const end = await node.reeve('reconcile', '--json');
    expect([end.status, end.json().actions.map(({ action }) => action)]).toEqual([0, ['create', 'serve']]);
    expect(proxy.lines[0]).toBe('GET /containers/json');
    expect([published, node.shard().backends.length]).toEqual([[], 1]);
    expect(node.status().services.map(({ state, runningReplicas }) => [state, runningReplicas])).toEqual([
      ['running', 1],
    ]);
    expect(Math.abs(Date.now() - Date.parse(node.status().lastSeen))).toBeLessThan(60_000);
  });

  it('writes the status at each step, and where nothing has changed tells that it skips it (L106, L110, L111, L162)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'written', env: debugged, onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    const first = await node.reeve('reconcile');
    expect(linesOf(first.stderr, /^status written why=forced/).length).toBeGreaterThanOrEqual(2);
    expect(linesOf(first.stderr, /^shard written .*why=(first|changed)/)).toHaveLength(2);
    const second = await node.reeve('reconcile');
    expect(linesOf(second.stderr, /^(status|shard) /)).toEqual([
      'shard skipped edge=edge-1 why=skip',
      'status skipped why=skip',
    ]);
  });

  it('without an engine exits 69 at once, says how to start one, and tells it in the status (L15, L16, L110)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'bare', socket: '/run/no-such-engine.sock', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    const end = await node.reeve('reconcile');
    expect([end.status, end.stderr]).toEqual([69, expect.stringContaining('systemctl start docker')]);
    expect(node.status().caddy.error).toContain('cannot list containers');
  });

  it('does at the next one what the last one could not (L34)', async ({ onTestFinished }) => {
    const proxy = await startEngineProxy(engineSocket(), onTestFinished);
    const node = makeNode({ socket: proxy.socket, project: 'again', onTestFinished });
    await node.deploy([aWorkerDeploy()]);
    proxy.beforeRequest = (line) => {
      if (line === 'POST /containers/create') throw new Error('the engine is away');
    };
    expect((await node.reeve('reconcile')).status).toBe(1);
    expect(await node.containers()).toEqual([]);
    proxy.beforeRequest = () => {};
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect((await node.containers()).map(({ state }) => state)).toEqual(['running']);
  });
});
