// Asks the edge's Caddy and HAProxy, and systemd and the kernel about them.
import { readFile } from 'node:fs/promises';
import { fetchConfig } from '../caddy/admin.ts';
import { findCaddyBinary, knowsCloseDelay, readCaddyVersion } from '../caddy/version.ts';
import type { ClusterConfig } from '../config/config.ts';
import { parseHealthPaths } from '../edge/balancer-file.ts';
import { fetchBalancerHealth } from '../edge/balancer-live.ts';
import { balancerFile, balancerService, masterSocket, runtimeSocket } from '../edge/balancer-path.ts';
import { readLiveRoutes } from '../edge/live-routes.ts';
import { dialOfServer } from '../edge/plan-balancer.ts';
import { isHaproxyInstalled, usesHaproxy } from '../haproxy/binary.ts';
import { countOldWorkers } from '../haproxy/parse.ts';
import { askMaster } from '../haproxy/runtime.ts';
import { showUnits } from '../systemd/show.ts';
import { gatherDomains } from './gather-domains.ts';
import { gatherListeners } from './gather-listeners.ts';
import type { BalancerFacts } from './judge-balancer.ts';
import type { CaddyFacts, CaddyUnit } from './judge-caddy.ts';
import { describeSilence, isHung } from './silence.ts';
import type { World } from './world.ts';

/** Below the time that a check has. */
const deadlineMs = 4_000;

export async function gatherCaddy(world: World, cluster: ClusterConfig): Promise<CaddyFacts> {
  const { signal } = world;
  const { admin, httpPort, httpsPort } = cluster.caddy;
  const [live, binary, units, migrates, strangers, isHaproxy] = await Promise.all([
    readLive(cluster, { signal }),
    findCaddyBinary(),
    world.units().then((known) => (known === undefined ? undefined : gatherCaddyUnits())),
    readMigrates(),
    gatherStrangers([httpPort, httpsPort]),
    usesHaproxy(cluster.balancer),
  ]);
  const version = binary === undefined ? undefined : await readCaddyVersion(binary.path, { signal });
  return {
    admin,
    isInstalled: binary !== undefined,
    delaysClose: knowsCloseDelay(version),
    balancer: isHaproxy ? 'haproxy' : 'caddy',
    strangers,
    ...live,
    ...(version === undefined ? {} : { version }),
    ...(units === undefined ? {} : { units }),
    ...(migrates === undefined ? {} : { migrates }),
  };
}

export async function gatherBalancer(
  { base, signal }: World,
  cluster: ClusterConfig,
): Promise<BalancerFacts> {
  const { balancer: setting, haproxy } = cluster;
  const isInstalled = await isHaproxyInstalled();
  const facts = { setting, isInstalled, socket: runtimeSocket(haproxy), oldWorkers: 0, domains: [] };
  if (!isInstalled || setting === 'caddy') return facts;
  const options = { signal, timeoutMs: deadlineMs, service: balancerService };
  try {
    const { version, domains } = await fetchBalancerHealth(haproxy.directory, options);
    const processes = await askMaster(masterSocket(haproxy), 'show proc', options);
    const healthPaths = await readHealthPaths(base.paths);
    return {
      ...facts,
      oldWorkers: countOldWorkers(processes),
      domains: [...domains].map(([domain, servers]) => ({
        domain,
        up: servers.up,
        down: servers.down.map(dialOfServer),
        healthPath: healthPaths.get(domain),
      })),
      ...(version === undefined ? {} : { version }),
    };
  } catch (error) {
    return { ...facts, error: describeSilence(error), isHung: isHung(error) };
  }
}

/** What it serves is asked of itself. */
async function readLive(
  { caddy }: ClusterConfig,
  { signal }: { signal: AbortSignal },
): Promise<Pick<CaddyFacts, 'error' | 'domains'>> {
  try {
    const { text } = await fetchConfig(caddy.admin, { signal });
    const domains = readLiveRoutes(text).map(({ domain }) => domain);
    return { domains: await gatherDomains(domains, caddy) };
  } catch (error) {
    return { error: describeSilence(error), domains: [] };
  }
}

/** For words alone: where the file cannot be read, the check of the edge's look says so. */
async function readHealthPaths(paths: World['base']['paths']): Promise<ReadonlyMap<string, string>> {
  return parseHealthPaths(await readFile(balancerFile(paths), 'utf8').catch(() => ''));
}

async function gatherCaddyUnits(): Promise<CaddyUnit[]> {
  const properties = ['Id', 'ActiveState', 'UnitFileState', 'Restart', 'ExecStart', 'ExecReload'];
  const shown = await showUnits(['caddy.service', 'caddy-api.service'], properties);
  return shown.map((unit) => ({
    unit: unit['Id'] ?? '',
    active: ['active', 'activating', 'reloading'].includes(unit['ActiveState'] ?? ''),
    enabled: unit['UnitFileState'] === 'enabled',
    restart: unit['Restart'] ?? '',
    resumes: / --resume( |$)/.test(unit['ExecStart'] ?? ''),
    reloads: (unit['ExecReload'] ?? '') !== '',
  }));
}

async function readMigrates(): Promise<boolean | undefined> {
  const text = await readFile('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').catch(() => undefined);
  return text === undefined ? undefined : text.trim() !== '0';
}

/** Whoever listens there and is not Caddy, by whatever name its program has. */
async function gatherStrangers(ports: readonly number[]): Promise<CaddyFacts['strangers']> {
  const listeners = await gatherListeners(ports);
  return listeners
    .map(({ port, programs }) => ({
      port,
      programs: programs.filter(({ name }) => !name.startsWith('caddy')),
    }))
    .filter(({ programs }) => programs.length > 0);
}
