// When the edge on this machine is woken, and what two services with one domain come to.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { aWebService } from '../../support/builders.ts';
import { makeNode } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';

describe.concurrent('the edge on this machine', () => {
  it('is woken by a shard that has changed, and by none that only says that the node lives (L99)', async ({
    onTestFinished,
  }) => {
    const cluster = { intervals: { edge: '250ms', liveness: '1s' } };
    const node = makeNode({ project: 'wake', onTestFinished, cluster });
    const wake = join(node.root, 'run/wake/edge');
    await node.deploy([aWebDeploy({ replicas: 1 })], '--no-notify');
    expect(existsSync(wake)).toBe(false);
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(existsSync(wake)).toBe(true);
    rmSync(wake);
    const { updatedAt, backends } = node.shard();
    const tickAgain = async (): Promise<void> => {
      expect((await node.reeve('reconcile')).status).toBe(0);
      expect(node.shard().updatedAt).not.toBe(updatedAt);
    };
    await vi.waitFor(tickAgain, { timeout: 60_000 });
    expect(node.shard().backends).toEqual(backends);
    expect(existsSync(wake)).toBe(false);
  });
});

describe.concurrent('a domain that two services of a node claim', () => {
  it('is routed to one of them, and the other says so by name while the rest goes on (R48)', async ({
    onTestFinished,
  }) => {
    const node = makeNode({ project: 'claim', onTestFinished });
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const { backends } = node.shard();
    const [web] = node.desired().services;
    const image = web?.image ?? '';
    const more = { project: 'claim', image, memory: 64, healthCheck: web?.healthCheck ?? null };
    const at = (domain: string) => ({ domain, port: 8080, edge: 'edge-1' });
    node.writeDesired([
      aWebService({ ...more, service: 'first', ingress: at('WEB.example.com') }),
      ...node.desired().services,
      aWebService({ ...more, service: 'other', ingress: at('Other.example.com') }),
    ]);
    const end = await node.reeve('reconcile', '--json');
    const message = 'cannot route it: domain "WEB.example.com" is claimed by claim/web too';
    expect([end.status, end.json().troubles]).toEqual([1, [{ key: 'claim/first', message }]]);
    expect(node.shard().backends).toEqual([
      expect.objectContaining({ domain: 'Other.example.com' }),
      ...backends,
    ]);
    expect(node.status().services.map(({ service, state, message }) => [service, state, message])).toEqual([
      ['first', 'error', message],
      ['other', 'running', 'running'],
      ['web', 'running', 'running'],
    ]);
    expect(node.reeveJson()).toMatchObject({ converged: false, failing: [{ service: 'first', message }] });
  });
});
