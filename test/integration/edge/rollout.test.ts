// A rollout behind the edge: two replicas on each of two app nodes with an engine each, under requests and with tunnels.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchOnceServed } from '../../support/caddy.ts';
import { startEdge, type TestEdge } from '../../support/edge.ts';
import { type EdgePlace, openTunnel, startEdgeTraffic, type Tunnel } from '../../support/edge-traffic.ts';
import { engineDirectory, engineSocket, startEngine, stopEngine } from '../../support/engine.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { aWebDeploy } from '../../support/services.ts';
import { buildWebImages } from '../../support/web-image.ts';

const second = engineDirectory('edge-rollout');
let sockets: string[];
let images: string[];

beforeAll(() => {
  sockets = [engineSocket(), startEngine(second)];
  for (const socket of sockets) images = buildWebImages(socket, ['v1', 'v2']);
});
afterAll(() => stopEngine(second));

type Cluster = { edge: TestEdge; nodes: TestNode[]; places: { web: EdgePlace; chat: EdgePlace } };

const perSecond = 500;
const tunnelsEach = 25;

async function startCluster(balancer: 'caddy' | 'haproxy'): Promise<Cluster> {
  const edge = await startEdge({ balancer });
  const nodes = sockets.map((socket, index) => {
    const address = `127.0.0.${index + 1}`;
    const cluster = { advertiseIp: address, publish: address, intervals: { edge: '60s' } };
    const nodeId = `app-${balancer}-${index}`;
    return makeNode({ nodeId, project: balancer, socket, storeDir: edge.storeDir, cluster });
  });
  edge.watch();
  await deploy(nodes, 'v1');
  const place = async (service: string): Promise<EdgePlace> => {
    const domain = `${service}.example.com`;
    await fetchOnceServed(edge.caddy, domain);
    return { port: edge.caddy.settings.httpsPort, domain, ca: edge.caddy.root() };
  };
  // Once all of them are in force, nothing is pushed any more until the next deploy.
  await expect
    .poll(() => edge.status().edgeRoutes, { timeout: 60_000 })
    .toMatchObject([{ upstreams: nodes.length }, { upstreams: 2 * nodes.length }]);
  return { edge, nodes, places: { web: await place('web'), chat: await place('chat') } };
}

/** Both services on both nodes; `chat` stays what it is. */
async function deploy(nodes: readonly TestNode[], version: string): Promise<void> {
  const [first, ...others] = nodes as [TestNode, ...TestNode[]];
  const placed = nodes.map(({ nodeId }) => nodeId);
  const common = {
    nodes: placed,
    memory: 128,
    rollout: { maxSurge: 1, drainTimeout: '1s', stopGrace: '5s' },
  };
  await first.deploy([
    aWebDeploy({ ...common, image: images[version === 'v1' ? 0 : 1] }),
    aWebDeploy({ ...common, service: 'chat', image: images[0], replicas: 1 }),
  ]);
  const ends = await Promise.all([first, ...others].map((node) => node.reeve('reconcile')));
  for (const end of ends) if (end.status !== 0) throw new Error(`reconcile: ${end.stdout}${end.stderr}`);
}

const openTunnels = (place: EdgePlace): Promise<Tunnel[]> =>
  Promise.all(Array.from({ length: tunnelsEach }, () => openTunnel(place)));

const closed = (tunnels: readonly Tunnel[]): number =>
  tunnels.filter(({ closedAt }) => closedAt !== undefined).length;

/** Rolls `web` from v1 to v2 under traffic; `chat` and what is new of `web` have tunnels that are to live. */
async function rollUnderTraffic({ edge, nodes, places }: Cluster) {
  const chat = await openTunnels(places.chat);
  const old = await openTunnels(places.web);
  const pushes = (await edge.caddy.changes()).length;
  const running = startEdgeTraffic(places.web, perSecond);
  const beganAt = performance.now();
  await deploy(nodes, 'v2');
  const seconds = (performance.now() - beganAt) / 1000;
  const fresh = await openTunnels(places.web);
  const traffic = await running.stop();
  const ended = { chat: closed(chat), old: closed(old), fresh: closed(fresh) };
  for (const tunnel of [...chat, ...fresh].filter(({ closedAt }) => closedAt === undefined))
    await tunnel.echo();
  for (const tunnel of [...chat, ...old, ...fresh]) tunnel.close();
  return { traffic, ended, seconds, pushes: (await edge.caddy.changes()).length - pushes };
}

function tell(
  balancer: string,
  { traffic, ended, seconds, pushes }: Awaited<ReturnType<typeof rollUnderTraffic>>,
): void {
  const { served, failures, versions } = traffic;
  console.log(
    `figure: ${balancer}: rollout of 4 replicas in ${seconds.toFixed(1)} s under ${perSecond} requests/s at most: ` +
      `${served} served (${JSON.stringify(versions)}), ${failures.length} failed; of ${tunnelsEach} tunnels each ` +
      `${ended.chat} of another service, ${ended.fresh} of new and ${ended.old} of replaced replicas closed; ${pushes} pushes`,
  );
  if (failures.length > 0) console.log(failures.slice(0, 5).join('\n'));
}

describe('a rollout behind the edge', () => {
  it('loses no request, and no tunnel but those of the replicas that go, where HAProxy balances (L98-L105, L134)', {
    timeout: 240_000,
  }, async () => {
    const result = await rollUnderTraffic(await startCluster('haproxy'));
    tell('haproxy', result);
    expect(result.traffic.failures).toEqual([]);
    expect(result.traffic.served).toBeGreaterThan(perSecond);
    expect(Object.keys(result.traffic.versions).sort()).toEqual(['v1', 'v2']);
    expect([result.ended.chat, result.ended.fresh, result.pushes]).toEqual([0, 0, 0]);
    // With an acknowledgement from the edge nobody waits for the floor, which would be 90 s for each of two rounds.
    expect(result.seconds).toBeLessThan(90);
  });

  it('ends in the same place where Caddy balances alone, and what that costs is told', {
    timeout: 240_000,
  }, async () => {
    const result = await rollUnderTraffic(await startCluster('caddy'));
    tell('caddy', result);
    expect(result.pushes).toBeGreaterThan(0);
    expect(result.traffic.versions['v2']).toBeGreaterThan(0);
    expect(result.seconds).toBeLessThan(90);
  });
});
