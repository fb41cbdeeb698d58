// A configuration's drop-ins: only what it changes about the shipped units. Pure.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterConfig, Config } from '../config/config.ts';
import { ConfigError } from '../errors.ts';
import { hiddenPaths, type Place, type ServiceUnit, services, type TimerUnit, timers } from './units.ts';

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
  const forTimers = cluster === undefined ? [] : timers.map((timer) => renderTimer(timer, cluster));
  const forServices = services.map((service) => renderService(service, cluster, configFile));
  return [...forTimers, ...forServices]
    .filter(({ lines }) => lines.length > 0)
    .map(({ unit, lines }) => ({ unit, text: `${[...heading(configFile), ...lines].join('\n')}\n` }));
}

type Rendered = { unit: string; lines: string[] };

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

/** A path that the service has to reach, and why. */
type Opening = { why: string; path: string; write: boolean; zone: Zone | undefined };

/** What the sandbox covers: homes by ProtectHome=, temporary files by PrivateTmp=. */
type Zone = 'home' | 'tmp';
const zones: readonly (readonly [prefix: string, zone: Zone])[] = [
  ['/home', 'home'],
  ['/root', 'home'],
  ['/run/user', 'home'],
  ['/tmp', 'tmp'],
  ['/var/tmp', 'tmp'],
];

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
  return wanted
    .map((opening) => ({ ...opening, path: plainPath(opening.path) }))
    .map((opening) => ({ ...opening, zone: zoneOf(opening.path) }))
    .filter(({ path, write, zone }) => zone !== undefined || (write && !isBelowAny(path, ownDirectories)));
}

/** The socket's directory, so that an engine that restarts is found again; the socket alone where that is all of /tmp. */
function reachSocket(socket: string): string {
  const directory = dirname(plainPath(socket));
  return zones.some(([prefix]) => prefix === directory) ? socket : directory;
}

function renderOpening({ why, path, write, zone }: Opening): string[] {
  // "-": where the directory is missing the unit still starts, and reeve says in words what it misses. Each run is a new
  // process with a new view of the file system, so nothing stays hidden once it is there.
  if (zone === undefined) return [`# ${why}`, `ReadWritePaths=${quote(`-${path}`)}`];
  return [`# ${why}`, `${write ? 'BindPaths' : 'BindReadOnlyPaths'}=${quote(`-${path}`, ':')}`];
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

function zoneOf(path: string): Zone | undefined {
  return zones.find(([prefix]) => isBelowAny(path, [prefix]))?.[1];
}

function isBelowAny(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** Without the link that every Debian has, and without a slash at the end. */
function plainPath(path: string): string {
  const trimmed = path.replace(/(?<=.)\/+$/, '');
  return trimmed.startsWith('/var/run/') ? trimmed.slice('/var'.length) : trimmed;
}

/** One word of a unit file's list, with systemd's specifiers taken literally. */
function quote(text: string, separators = ''): string {
  let word = printable(text).replaceAll('%', '%%');
  if (/["'\\\s]/.test(word)) word = `"${word.replaceAll(/["\\]/g, '\\$&')}"`;
  return separators === '' ? word : word.replaceAll(':', '\\:');
}

function printable(text: string): string {
  if (/\p{Cc}/u.test(text)) {
    throw new ConfigError(
      `cannot write units: ${JSON.stringify(text)} has control characters, which no unit file can hold`,
    );
  }
  return text;
}
