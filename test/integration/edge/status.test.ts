// What `reeve status` says of an edge: of the one on this machine, and of those of the cluster.
import { describe, expect, it } from 'vitest';
import { statusFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import type { NodeStatus } from '../../../src/lib/cluster/wire.ts';
import { startBackend } from '../../support/backends.ts';
import { aNodeStatus } from '../../support/builders.ts';
import { edgeId, startEdge } from '../../support/edge.ts';
import { type Machine, makeMachine } from '../../support/machine.ts';

const edgeStatus = (change: Partial<NodeStatus> = {}): NodeStatus => ({
  ...aNodeStatus({ nodeId: 'edge-1', services: [] }),
  lastSeen: new Date().toISOString(),
  caddy: { managed: true, lastReloadAt: new Date().toISOString(), error: null },
  edgeRoutes: [
    { domain: 'a.example.com', upstreams: 2 },
    { domain: 'b.example.com', upstreams: 1 },
  ],
  ...change,
});

const publishedOf = (body: NodeStatus, failing?: string[]): object => ({
  version: 1,
  body,
  status: { fingerprint: statusFingerprint(body), lastWriteAt: new Date().toISOString() },
  reeve: null,
  ...(failing && { failing }),
});

/** Ages differ from run to run. */
const withoutAges = (text: string): string[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/[\d.]+m?s ago/g, 'AGO').replaceAll(/ +/g, ' '));

describe('the status of a machine that is an edge', () => {
  const makeEdge = (cluster = {}): Machine =>
    makeMachine({ cluster: { nodeId: 'edge-1', role: 'edge', balancer: 'caddy', ...cluster } });

  it('has its domains with their backends, and how Caddy fares', async () => {
    const machine = makeEdge();
    machine.write('state/published-edge.json', publishedOf(edgeStatus()));
    const end = await machine.reeve('status');
    expect([end.status, withoutAges(end.stdout)]).toEqual([
      0,
      [
        'edge edge-1: published AGO, 2 domains, 3 backends',
        'caddy: last configured AGO',
        'balancer: caddy',
        'DOMAIN BACKENDS',
        'a.example.com 2',
        'b.example.com 1',
        'no concern has run yet',
      ],
    ]);
  });

  it('has each fault once, in the words of the tick that met it, and fails', async () => {
    const machine = makeEdge({ balancer: 'haproxy', haproxy: { directory: '/nonexistent' } });
    const error = 'caddy /load: cannot read the configuration of Caddy: nothing listens there';
    const caddy = { managed: true, lastReloadAt: null, error };
    const failing = [
      'caddy: cannot read the configuration of Caddy: nothing listens there',
      'balancer: cannot ask HAProxy',
      'app-1 a b:20001: it is no domain name',
    ];
    machine.write('state/published-edge.json', publishedOf(edgeStatus({ caddy, edgeRoutes: [] }), failing));
    const end = await machine.reeve('status');
    expect([end.status, withoutAges(end.stdout).slice(1, -1)]).toEqual([
      1,
      [
        'caddy: never given a configuration',
        'balancer: haproxy, which does not answer',
        ...failing.map((trouble) => `trouble ${trouble}`),
      ],
    ]);
  });

  it('names a wildcard that no public authority signs, unless Caddy signs itself', async () => {
    const edgeRoutes = [{ domain: '*.example.com', upstreams: 1 }];
    const told = expect.stringMatching(/^trouble \*\.example\.com: no certificate: a wildcard needs /);
    for (const [issuer, status, lines] of [
      ['acme', 1, [told]],
      ['internal', 0, []],
    ] as const) {
      const machine = makeEdge({ caddy: { issuer } });
      machine.write('state/published-edge.json', publishedOf(edgeStatus({ edgeRoutes })));
      const end = await machine.reeve('status');
      expect([end.status, withoutAges(end.stdout).slice(5, -1)]).toEqual([status, lines]);
    }
  });

  it('counts 2,000 domains, and lists them with --json', async () => {
    const machine = makeEdge();
    const edgeRoutes = Array.from({ length: 2000 }, (_, at) => ({ domain: `d${at}.test`, upstreams: 1 }));
    machine.write('state/published-edge.json', publishedOf(edgeStatus({ edgeRoutes })));
    const lines = withoutAges((await machine.reeve('status')).stdout);
    expect([lines.length, lines[0]]).toEqual([4, 'edge edge-1: published AGO, 2000 domains, 2000 backends']);
    const { edge } = JSON.parse((await machine.reeve('status', '--json')).stdout);
    expect(edge).toMatchObject({ id: 'edge-1', domains: edgeRoutes, troubles: [], caddy: { error: null } });
  });

  it('has both halves where it runs containers, too', async () => {
    const machine = makeMachine({ cluster: { nodeId: 'box', role: ['app', 'edge'] } });
    expect(withoutAges((await machine.reeve('status')).stdout).slice(0, 2)).toEqual([
      'node box: nothing published yet',
      'edge box-edge: nothing published yet',
    ]);
    machine.write('state/published.json', publishedOf(aNodeStatus({ nodeId: 'box' })));
    machine.write('state/published-edge.json', publishedOf(edgeStatus({ nodeId: 'box-edge' })));
    const end = await machine.reeve('status');
    const lines = withoutAges(end.stdout);
    expect(lines).toEqual(
      expect.arrayContaining([
        'node box: published AGO',
        expect.stringMatching(/^blog\/web running/),
        'edge box-edge: published AGO, 2 domains, 3 backends',
      ]),
    );
  });

  it('has a domain whose backends are all dead, which the edge’s look has nothing against', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const [one, two] = [await startBackend('one'), await startBackend('two')];
    const hostPorts = [one.port, two.port];
    edge.publish(
      'app-1',
      hostPorts.map((hostPort) => ({ domain: 'a.example.com', hostPort, healthPath: '/' })),
    );
    await edge.tick();
    const backends = async (): Promise<[number | null, string | undefined]> => {
      const end = await edge.reeve('status');
      return [end.status, withoutAges(end.stdout).find((line) => line.startsWith('a.example.com'))];
    };
    await expect.poll(backends, { timeout: 30_000 }).toEqual([0, 'a.example.com 2 of 2 serve']);
    await Promise.all([one.stop(), two.stop()]);
    await expect.poll(backends, { timeout: 30_000 }).toEqual([1, 'a.example.com 0 of 2 serve']);
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
    const told = async (): Promise<unknown> => JSON.parse((await edge.reeve('status', '--json')).stdout).edge;
    await expect.poll(told, { timeout: 30_000 }).toMatchObject({
      balancer: { name: 'haproxy', answers: true },
      domains: [{ domain: 'a.example.com', upstreams: 2, serving: 0 }],
    });
  });

  it('tells what a tick has found', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    const backend = await startBackend('one');
    edge.publish('app-1', [
      { domain: 'a.example.com', hostPort: backend.port },
      { domain: 'a b', hostPort: 20001 },
    ]);
    await edge.tick(1);
    const { edge: told } = JSON.parse((await edge.reeve('status', '--json')).stdout);
    expect(told).toMatchObject({
      id: edgeId,
      domains: [{ domain: 'a.example.com', upstreams: 1 }],
      troubles: ['app-1 a b:20001: it is no domain name'],
      caddy: { managed: true, error: null },
    });
    // Once it is mended, nothing of it is left.
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.tick();
    const end = await edge.reeve('status', '--json');
    expect([end.status, JSON.parse(end.stdout).edge.troubles]).toEqual([0, []]);
  });
});

describe('the history of a domain', () => {
  it('has what the edge did for it, and nothing of another one', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const backend = await startBackend('one');
    const at = (domain: string) => ({ domain, hostPort: backend.port });
    edge.publish('app-1', [at('a.example.com')]);
    await edge.tick();
    edge.publish('app-1', [at('a.example.com'), at('b.example.com')]);
    await edge.tick();
    const actionsOf = async (domain: string): Promise<string[]> => {
      const end = await edge.reeve('history', domain, '--json');
      const { events } = JSON.parse(end.stdout) as { events: { action: string }[] };
      return events.map(({ action }) => action);
    };
    expect(await actionsOf('B.example.com')).toEqual(['write', 'reload', 'push']);
    expect(await actionsOf('c.example.com')).toEqual([]);
    expect((await edge.reeve('history', 'shop/web/more')).status).toBe(64);
  });
});

describe('the status of the cluster', () => {
  it('has edges with their routes and balancers, and those that were never seen', async () => {
    const machine = makeMachine();
    const put = (key: string, document: unknown): void => {
      machine.write(`store/nodes/${key}`, document);
    };
    const reeveJson = (nodeId: string, edge: object): object => ({
      ...{ version: 1, nodeId, reeve: '0', updatedAt: '', desired: null, converged: false },
      ...{ failing: [], draining: [], edge },
    });
    const report = { balancer: 'haproxy', applied: {}, rejected: [], repairs: 2 };
    const refused = { node: 'app-1', subject: 'a b:1', reason: 'it is no domain name' };
    const caddy = { managed: true, lastReloadAt: null, error: 'caddy /load: it is down' };
    put('edge-1/status.json', edgeStatus());
    put('edge-1/reeve.json', reeveJson('edge-1', report));
    put('edge-2/status.json', edgeStatus({ nodeId: 'edge-2', caddy }));
    const failing = [{ project: '', service: '', message: 'balancer: it is down, too' }];
    put('edge-2/reeve.json', {
      ...reeveJson('edge-2', { ...report, rejected: [refused, refused] }),
      failing,
    });
    // launch-pad's agent, which has no reeve.json.
    put('edge-3/status.json', edgeStatus({ nodeId: 'edge-3' }));
    // Only named by those who publish for it.
    put('edge-4/upstream/web-1.json', {});
    put('web-1/status.json', { ...aNodeStatus({ nodeId: 'web-1' }), lastSeen: new Date().toISOString() });
    const end = await machine.reeve('status', '--cluster');
    expect([end.status, withoutAges(end.stdout)]).toEqual([
      1,
      [
        'NODE SEEN STATE SERVICES REPLICAS ROUTES TROUBLE',
        'edge-1 AGO live 2 by haproxy',
        'edge-2 AGO live 2 by haproxy caddy /load: it is down; balancer: it is down, too; ' +
          'app-1 a b:1: it is no domain name (and 1 more)',
        'edge-3 AGO live 2 by unknown',
        'edge-4 never never seen',
        'web-1 AGO live 1 1/1',
      ],
    ]);
    const { nodes } = JSON.parse((await machine.reeve('status', '--cluster', '--json')).stdout);
    expect(nodes[0].edge).toEqual({
      ...{ balancer: 'haproxy', routes: 2, caddyError: null, balancerError: null, rejected: [], repairs: 2 },
    });
  });
});
