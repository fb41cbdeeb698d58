// A configuration's drop-ins: only what it changes about the shipped units. Pure.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterConfig, Config, Role } from '../config/config.ts';
import { isBelowAny, type Opening, plainPath, renderOpening, zoneOf, zones } from './openings.ts';
import { printable, quote } from './quote.ts';
import { type Rendered, renderEdge } from './render-edge.ts';
import {
  backupsDirectory,
  balancerUnits,
  hiddenPaths,
  listenTimer,
  type Place,
  roleTargets,
  type ServiceUnit,
  services,
  type TimerUnit,
  timers,
} from './units.ts';

/** The part of a configuration that units depend on. */
export type ConfiguredCluster = Pick<Config, 'cluster'>;

export type DropIn = { unit: string; text: string };

export const dropInName = '50-reeve.conf';
const defaultConfigFile = '/etc/reeve/reeve.yaml';

/** Below this an accuracy of a second would be felt; demonstrations and tests tick every two seconds. */
const shortIntervalMs = 20_000;
/** The first run comes after so many intervals at most. */
const firstIntervals = 5;

/** In the order of the units; none for a unit that the configuration leaves as it is. */
export function renderDropIns(config: ConfiguredCluster, configFile: string = defaultConfigFile): DropIn[] {
  const { cluster } = config;
  const isUsed = ({ role, listens }: { role?: Role; listens?: true }): boolean =>
    (role === undefined || cluster === undefined || cluster.roles.includes(role)) &&
    (listens === undefined || isNotified(cluster));
  const forTimers =
    cluster === undefined ? [] : timers.filter(isUsed).map((timer) => renderTimer(timer, cluster));
  const forServices = services.filter(isUsed).map((service) => renderService(service, cluster, configFile));
  const forEdge = cluster?.roles.includes('edge') === true ? renderEdge(cluster) : [];
  return [...forTimers, ...forServices, ...forEdge]
    .filter(({ lines }) => lines.length > 0)
    .map(({ unit, lines }) => ({ unit, text: `${[...heading(configFile), ...lines].join('\n')}\n` }));
}

/** Those of the switches that are on in this configuration. */
export function findEnabled({ cluster }: ConfiguredCluster): string[] {
  if (cluster === undefined) return [];
  const targets = cluster.roles.map((role) => roleTargets[role]);
  // Without HAProxy on the machine they do not start: that `auto` needs no rendering when it comes or goes.
  const balances = cluster.roles.includes('edge') && cluster.balancer !== 'caddy';
  return [
    ...targets,
    ...(balances ? balancerUnits : []),
    ...(isNotified(cluster) && targets.length > 0 ? [listenTimer] : []),
  ];
}

function isNotified(cluster: ClusterConfig | undefined): boolean {
  return cluster?.notify === 'sns';
}

function heading(configFile: string): string[] {
  return [
    `# Written by \`reeve units render --write\` from ${printable(configFile)}: change it there. Settings of your own belong`,
    '# into a file of their own (`systemctl edit`), which is left alone.',
    '',
  ];
}

function renderTimer(timer: TimerUnit, cluster: ClusterConfig): Rendered {
  const ms = cluster.intervals[timer.interval];
  if (ms === timer.defaultMs) return { unit: timer.unit, lines: [] };
  const precision =
    ms < shortIntervalMs ? ['AccuracySec=100ms', 'RandomizedDelaySec=0', 'FixedRandomDelay=no'] : [];
  return {
    unit: timer.unit,
    lines: [
      '[Timer]',
      "# Empty first: else the unit's own values would stay in force beside these.",
      'OnActiveSec=',
      `OnActiveSec=${span(Math.min(timer.firstMs, firstIntervals * ms))}`,
      `OnUnitInactiveSec=${span(ms)}`,
      ...precision,
    ],
  };
}

function span(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function renderService(
  service: ServiceUnit,
  cluster: ClusterConfig | undefined,
  configFile: string,
): Rendered {
  const openings = findOpenings(service, cluster, configFile);
  const lines = [
    ...renderEnvironment(configFile),
    ...renderHidden(service, cluster, openings),
    ...openings.flatMap(renderOpening),
  ];
  return { unit: service.unit, lines: lines.length === 0 ? [] : ['[Service]', ...lines] };
}

function renderEnvironment(configFile: string): string[] {
  return configFile === defaultConfigFile ? [] : [`Environment=${quote(`REEVE_CONFIG=${configFile}`)}`];
}

/** What every service may write already (StateDirectory=, CacheDirectory=, ReadWritePaths=). */
const ownDirectories = ['/var/lib/reeve', '/var/cache/reeve', '/run/reeve'];

function findOpenings(
  service: ServiceUnit,
  cluster: ClusterConfig | undefined,
  configFile: string,
): Opening[] {
  const wanted = [{ why: 'the configuration', path: dirname(configFile), write: false }];
  for (const [place, access] of Object.entries(service.places)) {
    const url = cluster?.[place as Place];
    if (!url?.startsWith('file:')) continue;
    wanted.push({ why: `cluster.${place}`, path: fileURLToPath(url), write: access === 'write' });
  }
  if (service.engine && cluster !== undefined) {
    wanted.push({ why: 'cluster.docker.socket', path: reachSocket(cluster.docker.socket), write: false });
  }
  if (service.role === 'edge' && cluster !== undefined) {
    wanted.push({ why: 'cluster.haproxy.directory', path: cluster.haproxy.directory, write: false });
  }
  const own = service.places.backups === undefined ? ownDirectories : [...ownDirectories, backupsDirectory];
  return wanted
    .map((opening) => ({ ...opening, path: plainPath(opening.path) }))
    .map((opening) => ({ ...opening, zone: zoneOf(opening.path) }))
    .filter(({ path, write, zone }) => zone !== undefined || (write && !isBelowAny(path, own)));
}

/** The socket's directory, so that an engine that restarts is found again; the socket alone where that is all of /tmp. */
function reachSocket(socket: string): string {
  const directory = dirname(plainPath(socket));
  return zones.some(([prefix]) => prefix === directory) ? socket : directory;
}

function renderHidden(
  service: ServiceUnit,
  cluster: ClusterConfig | undefined,
  openings: readonly Opening[],
): string[] {
  const socket = plainPath(cluster?.docker.socket ?? '/run/docker.sock');
  const isMoved = !service.engine && socket !== '/run/docker.sock';
  const moved = isMoved ? ['# cluster.docker.socket', `InaccessiblePaths=${quote(`-${socket}`)}`] : [];
  if (!openings.some(({ zone }) => zone === 'home')) return moved;
  const rest = hiddenPaths(service).filter((path) => path !== '/root');
  return [
    '# Of the homes only what is named below.',
    'ProtectHome=tmpfs',
    'InaccessiblePaths=',
    `InaccessiblePaths=${rest.map((path) => `-${path}`).join(' ')}`,
    ...moved,
  ];
}
