// The section `cluster`: launch-pad's part. Defaults, launch-pad's environment variables, and what must fit together.
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findBucketFault } from '../store/bucket-url.ts';
import type { ClusterConfig, Role } from './config.ts';
import type { OverrideName } from './environment.ts';
import { staleWindowMs } from './rules.ts';
import type { ClusterInput } from './schema.ts';
import { isWebUrl, type Section, type Surroundings, toMs } from './section.ts';
import { readEdge } from './section-edge.ts';

type ClusterSection = Section<ClusterInput>;

const defaultPollMs = 60_000;
const defaultLivenessMs = 30_000;

export function readCluster(section: ClusterSection, around: Surroundings): ClusterConfig {
  const { value } = section;
  const { overrides } = around;
  const identity = readIdentity(section);
  const advertiseIp = readAdvertiseIp(section, around);
  checkPublish(section, advertiseIp);
  checkPlaces(section);
  return {
    ...identity,
    clusterId: value.clusterId ?? 'default',
    ...(advertiseIp === undefined ? {} : { advertiseIp }),
    publish: value.publish ?? '0.0.0.0',
    ...readStore(section, around),
    ...readPlaces(value, around),
    intervals: readIntervals(section, around, identity.roles),
    docker: {
      socket: value.docker?.socket ?? '/var/run/docker.sock',
      parallel: value.docker?.parallel ?? 4,
    },
    ...readEdge(section, around),
    agentVersion: overrides.LAUNCHPAD_AGENT_VERSION ?? '0.0.0',
    statsServices: overrides.LAUNCHPAD_STATS_SERVICES !== '0',
    debugStore: overrides.LAUNCHPAD_DEBUG_S3 === '1',
    once: overrides.LAUNCHPAD_ONCE === '1',
    importState: overrides.LAUNCHPAD_STATE ?? '/var/lib/launch-pad/state.json',
  };
}

type Identity = Pick<ClusterConfig, 'nodeId' | 'agentId' | 'roles' | 'edgeId'>;

function readIdentity(section: ClusterSection): Identity {
  const { nodeId, agentId, role } = section.value;
  if (nodeId === undefined) {
    for (const key of ['agentId', 'role', 'edgeId'] as const) {
      if (section.value[key] !== undefined) section.report([key], 'needs cluster.nodeId beside it');
    }
    return { roles: [] };
  }
  const roles: readonly Role[] = role === undefined ? ['app'] : [...new Set([role].flat())];
  const edgeId = readEdgeId(section, nodeId, roles);
  return { nodeId, agentId: agentId ?? nodeId, roles, ...(edgeId === undefined ? {} : { edgeId }) };
}

function readEdgeId(section: ClusterSection, nodeId: string, roles: readonly Role[]): string | undefined {
  const { edgeId } = section.value;
  if (!roles.includes('edge')) {
    if (edgeId !== undefined) section.report(['edgeId'], 'is only for a node whose role has edge');
    return undefined;
  }
  if (!roles.includes('app')) return edgeId ?? nodeId;
  if (edgeId === nodeId) {
    section.report(['edgeId'], 'must differ from cluster.nodeId on a node that is both app and edge');
  }
  return edgeId ?? `${nodeId}-edge`;
}

function readAdvertiseIp(section: ClusterSection, { overrides }: Surroundings): string | undefined {
  const fromEnvironment = overrides.LAUNCHPAD_ADVERTISE_IP;
  if (fromEnvironment !== undefined) {
    if (isIP(fromEnvironment) === 0) {
      section.reportOutside(`LAUNCHPAD_ADVERTISE_IP must be an IP address, not "${fromEnvironment}"`);
    }
    return fromEnvironment;
  }
  const { advertiseIp } = section.value;
  if (advertiseIp !== undefined && isIP(advertiseIp) === 0) {
    section.report(['advertiseIp'], `must be an IP address, not "${advertiseIp}"`);
  }
  return advertiseIp;
}

function checkPublish(section: ClusterSection, advertiseIp: string | undefined): void {
  const { publish } = section.value;
  if (publish === undefined) return;
  if (publish === 'advertise') {
    if (advertiseIp === undefined) section.report(['publish'], 'is "advertise", which needs advertiseIp');
  } else if (isIP(publish) === 0) {
    section.report(['publish'], `must be an IP address or "advertise", not "${publish}"`);
  }
}

/** Not every URL of a file names one: `%2F` and `%00` stand in no name, and some escapes are no text. The same of a bucket. */
function checkPlaces(section: ClusterSection): void {
  for (const key of ['store', 'secrets', 'logs', 'backups'] as const) {
    const url = section.value[key];
    if (url?.startsWith('file:') && !isDirectory(url)) {
      section.report([key], `must be file:///DIRECTORY, and "${url}" has an escape that no path can have`);
    }
    const fault = url?.startsWith('s3:') ? findBucketFault(url) : undefined;
    if (fault !== undefined) section.report([key], `must be s3://BUCKET[/PREFIX] (${fault}), not "${url}"`);
  }
}

function isDirectory(url: string): boolean {
  try {
    return !fileURLToPath(url).includes('\0');
  } catch {
    return false;
  }
}

function readStore(
  section: ClusterSection,
  { paths, overrides }: Surroundings,
): Pick<ClusterConfig, 'store' | 'region' | 'endpoint'> {
  const { value } = section;
  const store = value.store ?? `file://${join(paths.stateDir, 'store')}`;
  const endpoint = overrides.AWS_ENDPOINT_URL ?? value.endpoint;
  if (overrides.AWS_ENDPOINT_URL !== undefined && !isWebUrl(overrides.AWS_ENDPOINT_URL)) {
    section.reportOutside('AWS_ENDPOINT_URL must be a URL that begins with http:// or https://');
  }
  const region = value.region ?? 'local';
  const regional = findRegional(value, store);
  if (endpoint === undefined && region === 'local' && regional !== undefined) {
    section.report(['region'], `must be the region of ${regional}`);
  }
  return { store, region, ...(endpoint === undefined ? {} : { endpoint }) };
}

/** What lies in a region of AWS. */
function findRegional({ secrets, notify }: ClusterInput, store: string): string | undefined {
  if (store.startsWith('s3://')) return store;
  if (secrets === 'ssm') return 'secrets: ssm';
  return notify === 'sns' ? 'notify: sns' : undefined;
}

/** Where things go that have a place of their own. A moved state directory takes logs and backups along. */
function readPlaces(
  value: ClusterInput,
  { paths }: Surroundings,
): Pick<ClusterConfig, 'secrets' | 'notify' | 'logs' | 'backups'> {
  const isMoved = paths.stateDir !== '/var/lib/reeve';
  const places = isMoved
    ? { logs: join(paths.stateDir, 'logs'), backups: join(paths.stateDir, 'backups') }
    : { logs: '/var/log/reeve', backups: '/var/backups/reeve' };
  return {
    secrets: value.secrets ?? `file://${join(dirname(paths.configFile), 'secrets')}`,
    notify: value.notify ?? 'none',
    logs: value.logs ?? `file://${places.logs}`,
    backups: value.backups ?? `file://${places.backups}`,
  };
}

/** Beyond it lie timers that fire at once and dates that do not exist. */
const longestMs = 24 * 60 * 60_000;

function readIntervals(
  section: ClusterSection,
  around: Surroundings,
  roles: readonly Role[],
): ClusterConfig['intervals'] {
  const { intervals } = section.value;
  checkIntervals(section);
  const pollMs = readPollOverride(section, around);
  const tickMs = pollMs ?? toMs(intervals?.tick) ?? defaultPollMs;
  if (tickMs > staleWindowMs && pollMs === undefined) {
    section.warn(
      `cluster.intervals.tick is longer than the ${staleWindowMs / 1000} s after which readers call a node stale`,
    );
  }
  // On a node that is no edge this is the edges' cadence, which this node's own variable says nothing about.
  const edgePollMs = roles.includes('edge') ? pollMs : undefined;
  const statsMs = readOverrideMs(section, around, 'LAUNCHPAD_STATS_INTERVAL_MS');
  return {
    tickMs,
    livenessMs: readLiveness(section, around),
    statsMs: Math.max(0, statsMs ?? toMs(intervals?.stats) ?? 60_000),
    edgeMs: edgePollMs ?? toMs(intervals?.edge) ?? defaultPollMs,
  };
}

function checkIntervals(section: ClusterSection): void {
  const { intervals } = section.value;
  for (const key of ['tick', 'liveness', 'edge'] as const) {
    if (toMs(intervals?.[key]) === 0) section.report(['intervals', key], 'must be longer than 0s');
  }
  for (const key of ['tick', 'liveness', 'stats', 'edge'] as const) {
    if ((toMs(intervals?.[key]) ?? 0) > longestMs)
      section.report(['intervals', key], 'must be a day at most');
  }
}

function readPollOverride(section: ClusterSection, around: Surroundings): number | undefined {
  const pollMs = readOverrideMs(section, around, 'LAUNCHPAD_POLL_MS');
  if (pollMs === undefined) return undefined;
  if (pollMs <= 0 || pollMs > longestMs) {
    section.warn(`LAUNCHPAD_POLL_MS is ${pollMs}, which is no interval: it is ignored`);
    return undefined;
  }
  if (pollMs >= staleWindowMs) {
    section.warn(
      `LAUNCHPAD_POLL_MS is ${pollMs}, not less than the ${staleWindowMs} after which readers call a node stale`,
    );
  }
  return pollMs;
}

/** A reader calls a node stale after a minute, so that two heartbeats must fit into it. */
function readLiveness(section: ClusterSection, around: Surroundings): number {
  const mostMs = staleWindowMs / 2;
  const configured = toMs(section.value.intervals?.liveness) ?? defaultLivenessMs;
  const raw = around.overrides.LAUNCHPAD_LIVENESS_MS;
  const livenessMs = raw === undefined ? configured : parseMs(raw);
  const source = raw === undefined ? 'cluster.intervals.liveness' : 'LAUNCHPAD_LIVENESS_MS';
  if (livenessMs === undefined || livenessMs <= 0) {
    section.warn(`${source} "${raw}" is no number of milliseconds: ${defaultLivenessMs} is used`);
    return defaultLivenessMs;
  }
  if (livenessMs <= mostMs) return livenessMs;
  section.warn(`${source} is ${livenessMs} ms: it is cut to ${mostMs} ms, half of what makes a node stale`);
  return mostMs;
}

function readOverrideMs(
  section: ClusterSection,
  { overrides }: Surroundings,
  name: OverrideName,
): number | undefined {
  const raw = overrides[name];
  if (raw === undefined) return undefined;
  const ms = parseMs(raw);
  if (ms === undefined) section.warn(`${name} "${raw}" is no number of milliseconds: it is ignored`);
  return ms;
}

function parseMs(raw: string): number | undefined {
  return /^-?\d{1,12}$/.test(raw.trim()) ? Number(raw) : undefined;
}
