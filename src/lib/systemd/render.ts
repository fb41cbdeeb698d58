// A configuration's drop-ins: only what it changes about the shipped units. Pure.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterConfig, Config } from '../config/config.ts';
import type { Overrides } from '../config/environment.ts';
import { isBelowAny, type Opening, plainPath, renderOpening, zoneOf, zones } from './openings.ts';
import { printable, quote } from './quote.ts';
import { findActionsOpenings, hasSide } from './render-actions.ts';
import { findCommandsOpenings } from './render-commands.ts';
import { type Rendered, renderEdge } from './render-edge.ts';
import { findJobsOpenings, isMade } from './render-jobs.ts';
import { renderProxy } from './render-proxy.ts';
import { renderSocket } from './render-socket.ts';
import {
  actionPath,
  actionsTarget,
  actionTimer,
  backupsDirectory,
  balancerUnits,
  commandsSocket,
  commandsTarget,
  hiddenPaths,
  jobsSocket,
  jobsTarget,
  listenTimer,
  type Place,
  proxyControl,
  proxyUnits,
  roleTargets,
  type ServiceUnit,
  services,
  type TimerUnit,
  timers,
} from './units.ts';

/** What units depend on: sections, and what /etc/reeve/environment says, which units read as well. */
export type UnitsConfig = Pick<Config, 'cluster' | 'jobs' | 'commands' | 'actions'> & {
  environment?: Overrides;
};

export type DropIn = { unit: string; text: string };

export const dropInName = '50-reeve.conf';
const defaultConfigFile = '/etc/reeve/reeve.yaml';

/** Below this an accuracy of a second would be felt; demonstrations and tests tick every two seconds. */
const shortIntervalMs = 20_000;
/** The first run comes after so many intervals at most. */
const firstIntervals = 5;

/** In the order of the units; none for a unit that the configuration leaves as it is. */
export function renderDropIns(config: UnitsConfig, configFile: string = defaultConfigFile): DropIn[] {
  const { cluster, jobs, commands } = config;
  const forTimers = timers.flatMap((timer) => renderTimer(timer, config));
  const forServices = services
    .filter((service) => isUsed(service, config))
    .map((service) => renderService(service, config, configFile));
  const forEdge = cluster?.roles.includes('edge') === true ? renderEdge(cluster) : [];
  const forApis = [
    ...(jobs === undefined ? [] : [renderSocket(jobsSocket, jobs.http.listen, '8444')]),
    ...(commands === undefined ? [] : [renderSocket(commandsSocket, commands.listenAddr, '127.0.0.1:7100')]),
  ];
  const control = renderService(proxyControl, config, configFile);
  const forProxy = commands === undefined ? [] : renderProxy(commands, control);
  return [...forTimers, ...forServices, ...forEdge, ...forApis, ...forProxy]
    .filter(({ lines }) => lines.length > 0)
    .map(({ unit, lines }) => ({ unit, text: `${[...heading(configFile), ...lines].join('\n')}\n` }));
}

/** Before there is a section, every unit may be. */
function isUsed(unit: TimerUnit | ServiceUnit, config: UnitsConfig): boolean {
  const { cluster, jobs, commands, actions } = config;
  if ([cluster, jobs, commands, actions].every((section) => section === undefined)) {
    return !('listens' in unit);
  }
  if ('side' in unit && unit.side !== undefined && !hasSide(config, unit.side)) return false;
  const isSection = !('section' in unit && unit.section !== undefined) || config[unit.section] !== undefined;
  const isRole = unit.role === undefined || cluster?.roles.includes(unit.role) === true;
  return isSection && isRole && (!('listens' in unit) || isNotified(cluster));
}

/** Those of the switches that are on in this configuration. */
export function findEnabled(config: UnitsConfig): string[] {
  const { cluster, jobs, commands } = config;
  const targets = (cluster?.roles ?? []).map((role) => roleTargets[role]);
  // Without HAProxy on the machine they do not start: that `auto` needs no rendering when it comes or goes.
  const balances = cluster?.roles.includes('edge') === true && cluster.balancer !== 'caddy';
  return [
    ...targets,
    ...(balances ? balancerUnits : []),
    ...(jobs === undefined ? [] : [jobsTarget]),
    ...(commands === undefined ? [] : [commandsTarget, ...proxyUnits]),
    ...(hasSide(config, 'node') ? [actionsTarget] : []),
    ...(hasSide(config, 'control') ? [actionTimer, actionPath] : []),
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

function renderTimer(timer: TimerUnit, config: UnitsConfig): Rendered[] {
  const ms = isUsed(timer, config) ? findInterval(timer, config) : undefined;
  if (ms === undefined) return [];
  const firstMs = isNode(config) ? timer.firstMs : aloneFirstMs;
  if (ms === timer.defaultMs && firstMs === timer.firstMs) return [];
  const precision =
    ms < shortIntervalMs ? ['AccuracySec=100ms', 'RandomizedDelaySec=0', 'FixedRandomDelay=no'] : [];
  const lines = [
    '[Timer]',
    "# Empty first: else the unit's own values would stay in force beside these.",
    'OnActiveSec=',
    `OnActiveSec=${span(Math.min(firstMs, firstIntervals * ms))}`,
    `OnUnitInactiveSec=${span(ms)}`,
    ...precision,
  ];
  return [{ unit: timer.unit, lines }];
}

/** Of a node whose beats wait for no tick. */
const aloneFirstMs = 1_000;

function isNode({ cluster }: UnitsConfig): boolean {
  return cluster?.nodeId !== undefined;
}

/** The shortest that one of its sections asks for; each is told only when it is due. */
function findInterval({ interval, planes }: TimerUnit, config: UnitsConfig): number | undefined {
  const { cluster, jobs, commands } = config;
  const isForPlanes = planes === true;
  const asked = [
    ...(cluster !== undefined && (isNode(config) || !isForPlanes) ? [cluster.intervals[interval]] : []),
    ...(isForPlanes && jobs !== undefined ? [jobs.heartbeat.intervalMs] : []),
    ...(isForPlanes && commands !== undefined ? [commands.heartbeatIntervalMs] : []),
  ];
  return asked.length === 0 ? undefined : Math.min(...asked);
}

function span(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function renderService(service: ServiceUnit, config: UnitsConfig, configFile: string): Rendered {
  // A path that is opened would confine the rest.
  const openings = service.isConfined === false ? [] : findOpenings(service, config, configFile);
  const lines = [
    ...renderEnvironment(configFile),
    ...(service.isConfined === false ? [] : renderHidden(service, config, openings)),
    ...openings.flatMap(renderOpening),
    ...renderMaking(openings.filter(isMade)),
  ];
  return { unit: service.unit, lines: lines.length === 0 ? [] : ['[Service]', ...lines] };
}

/** One command for all of them: a heartbeat pays for it twice a minute. */
function renderMaking(openings: readonly Opening[]): string[] {
  if (openings.length === 0) return [];
  return [`ExecStartPre=+/bin/mkdir -p -m 0750 -- ${openings.map(({ path }) => quote(path)).join(' ')}`];
}

function renderEnvironment(configFile: string): string[] {
  return configFile === defaultConfigFile ? [] : [`Environment=${quote(`REEVE_CONFIG=${configFile}`)}`];
}

/** What every service may write already (StateDirectory=, CacheDirectory=, ReadWritePaths=). */
const ownDirectories = ['/var/lib/reeve', '/var/cache/reeve', '/run/reeve'];

function findOpenings(service: ServiceUnit, config: UnitsConfig, configFile: string): Opening[] {
  const { cluster } = config;
  const wanted = [{ why: 'the configuration', path: dirname(configFile), write: false }];
  for (const [place, access] of Object.entries(service.places)) {
    const url = cluster?.[place as Place];
    if (!url?.startsWith('file:')) continue;
    wanted.push({ why: `cluster.${place}`, path: fileURLToPath(url), write: access === 'write' });
  }
  if (isEngineOpen(service, config) && cluster !== undefined) {
    wanted.push({ why: 'cluster.docker.socket', path: reachSocket(cluster.docker.socket), write: false });
  }
  if (service.role === 'edge' && cluster !== undefined) {
    wanted.push({ why: 'cluster.haproxy.directory', path: cluster.haproxy.directory, write: false });
  }
  wanted.push(...findJobsOpenings(service, config), ...findCommandsOpenings(service, config));
  wanted.push(...findActionsOpenings(service, config));
  const own = service.places.backups === undefined ? ownDirectories : [...ownDirectories, backupsDirectory];
  return wanted
    .map((opening) => ({ ...opening, path: plainPath(opening.path) }))
    .map((opening) => ({ ...opening, zone: zoneOf(opening.path) }))
    .filter(({ path, write, zone }) => zone !== undefined || (write && !isBelowAny(path, own)))
    .filter(isNotCovered);
}

/** One directory is opened once, and none that is below another one. */
function isNotCovered({ path, write }: Opening, index: number, all: readonly Opening[]): boolean {
  return !all.some((other, at) => {
    if (at === index || !isBelowAny(path, [other.path]) || (write && !other.write)) return false;
    return other.path !== path || other.write !== write || at < index;
  });
}

function isEngineOpen({ engine, jobs: part }: ServiceUnit, { jobs }: UnitsConfig): boolean {
  return engine || (part?.engine === true && jobs !== undefined);
}

/** The socket's directory, so that an engine that restarts is found again; the socket alone where that is all of /tmp. */
function reachSocket(socket: string): string {
  const directory = dirname(plainPath(socket));
  return zones.some(([prefix]) => prefix === directory) ? socket : directory;
}

function renderHidden(service: ServiceUnit, config: UnitsConfig, openings: readonly Opening[]): string[] {
  const isOpen = isEngineOpen(service, config);
  const socket = plainPath(config.cluster?.docker.socket ?? '/run/docker.sock');
  const isMoved = !isOpen && socket !== '/run/docker.sock';
  const moved = isMoved ? ['# cluster.docker.socket', `InaccessiblePaths=${quote(`-${socket}`)}`] : [];
  const isHome = openings.some(({ zone }) => zone === 'home');
  if (!isHome && isOpen === service.engine) return moved;
  const rest = hiddenPaths(service, isOpen).filter((path) => !isHome || path !== '/root');
  return [
    ...(isHome ? ['# Of the homes only what is named below.', 'ProtectHome=tmpfs'] : []),
    ...(isOpen === service.engine ? [] : ['# jobs: how the engine is, and how full its disk.']),
    'InaccessiblePaths=',
    `InaccessiblePaths=${rest.map((path) => `-${path}`).join(' ')}`,
    ...moved,
  ];
}
