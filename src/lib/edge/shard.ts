// Reads one shard. What cannot be served is refused by name, part by part; the rest is taken. Pure.
import { isIP } from 'node:net';
import { shardFingerprint } from '../cluster/fingerprint.ts';
import { isHealthPath } from '../cluster/rules.ts';
import type { ShardBackend } from '../cluster/wire.ts';
import { isPort } from '../port.ts';
import { isRecord } from '../state/shape.ts';
import { type Backend, dialOf, isRoutable } from './route.ts';

/** Something of a shard that is not served, and why. */
export type Rejection = { node: string; subject: string; reason: string };

export type CheckedBackend = Backend & { domain: string; healthPath?: string };

/** A shard as it can be worked with. */
export type CheckedShard = {
  node: string;
  /** Of the shard as its node wrote it. */
  fingerprint: string;
  /** Where the node is reached; absent where its shard does not tell. */
  host?: string;
  backends: readonly CheckedBackend[];
  rejected: readonly Rejection[];
};

/** Beyond any node's containers: host ports come from a range of ten thousand. */
const maxBackends = 20_000;
/** Beyond any shard; what is far deeper than that, a function that calls itself cannot follow. */
const maxDepth = 32;
const maxQuoted = 80;

/** `node` is whose shard it is by its key. Throws TypeError, with the reason as message, where nothing of it can be told. */
export function parseShard(text: string, node: string): CheckedShard {
  const raw = parseJson(text);
  const { nodeId, privateIp, backends } = raw;
  if (!Array.isArray(backends)) throw new TypeError('it has no list of backends');
  if (backends.length > maxBackends) throw new TypeError(`it has ${backends.length} backends`);
  if (nodeId !== node) throw new TypeError(`it says that it is node ${quote(nodeId)}: two writers share it`);
  const shard = { nodeId: node, privateIp: String(privateIp), backends: backends as ShardBackend[] };
  const fingerprint = fingerprintOf(shard);
  if (typeof privateIp === 'string' && isReachable(privateIp)) {
    return { node, fingerprint, host: privateIp, ...checkBackends(node, privateIp, backends) };
  }
  if (backends.length === 0) return { node, fingerprint, backends: [], rejected: [] };
  throw new TypeError(`its privateIp ${quote(privateIp)} is no address to reach the node at`);
}

function parseJson(text: string): Record<string, unknown> {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new TypeError('it is not whole JSON');
  }
  if (!isRecord(raw)) throw new TypeError('it is no object');
  if (isDeep(raw)) throw new TypeError(`it is nested more than ${maxDepth} deep`);
  return raw;
}

function isDeep(raw: unknown): boolean {
  let level = [raw];
  for (let depth = 0; depth <= maxDepth; depth += 1) {
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}

/** Entries that are no objects have no place in a fingerprint; a node that writes such is never acknowledged. */
function fingerprintOf(shard: { nodeId: string; privateIp: string; backends: ShardBackend[] }): string {
  return shard.backends.every(isRecord) ? shardFingerprint(shard) : '';
}

function checkBackends(
  node: string,
  host: string,
  raw: readonly unknown[],
): Pick<CheckedShard, 'backends' | 'rejected'> {
  const backends: CheckedBackend[] = [];
  const rejected: Rejection[] = [];
  const claims = new Map<string, string | undefined>();
  for (const entry of raw) {
    const { domain: written, hostPort, healthPath } = isRecord(entry) ? entry : {};
    const reject = (reason: string): void => {
      rejected.push({ node, subject: describeEntry(written, hostPort), reason });
    };
    const domain = typeof written === 'string' ? written.toLowerCase() : '';
    const reason = whyNot(domain, hostPort) ?? whyClaimedTwice(claims, domain, healthPath);
    if (reason !== undefined) reject(reason);
    else backends.push({ domain, host, port: hostPort as number, ...checkHealthPath(healthPath, reject) });
  }
  return { backends, rejected };
}

function checkHealthPath(raw: unknown, reject: (reason: string) => void): { healthPath?: string } {
  if (typeof raw === 'string' && isProbePath(raw)) return { healthPath: raw };
  if (raw !== undefined) reject(`${quote(raw)} is no path of a URL: it is served without probes`);
  return {};
}

/** Caddy refuses its whole configuration for a path that it takes for another host's, or cannot decode. */
export function isProbePath(path: string): boolean {
  return isHealthPath(path) && !path.startsWith('//') && !/%(?![0-9A-Fa-f]{2})/.test(path);
}

function whyNot(domain: string, hostPort: unknown): string | undefined {
  if (!isRoutable(domain)) return 'it is no domain name';
  return isPort(hostPort) ? undefined : `port ${quote(hostPort)} is not between 1 and 65535`;
}

/** One service has one health check on all its replicas: a second one for the domain is another service's. */
function whyClaimedTwice(
  healthPaths: Map<string, string | undefined>,
  domain: string,
  healthPath: unknown,
): string | undefined {
  const own = typeof healthPath === 'string' ? healthPath : undefined;
  if (!healthPaths.has(domain)) {
    healthPaths.set(domain, own);
    return undefined;
  }
  return healthPaths.get(domain) === own ? undefined : 'another service of the node claims the domain, too';
}

/** An address with a zone means something on its own machine only. */
function isReachable(address: string): boolean {
  return isIP(address) !== 0 && !address.includes('%') && address !== '0.0.0.0' && !/^[0:]+$/.test(address);
}

function describeEntry(domain: unknown, hostPort: unknown): string {
  return typeof domain === 'string'
    ? `${cut(domain)}:${cut(String(hostPort))}`
    : 'a backend without a domain';
}

function quote(value: unknown): string {
  return cut(JSON.stringify(value) ?? 'nothing');
}

/** Without what a terminal would obey. */
function cut(text: string): string {
  const short = text.length > maxQuoted ? `${text.slice(0, maxQuoted)}...` : text;
  return short.replaceAll(/\p{Cc}/gu, '?');
}

/** Two nodes behind one address are one node in two guises, or a mistake: the first one by id is served. */
export function findDoubles(shards: readonly CheckedShard[]): {
  shards: readonly CheckedShard[];
  rejected: readonly Rejection[];
} {
  const owners = new Map<string, string>();
  const rejected: Rejection[] = [];
  const kept = shards.map((shard) => {
    const backends = shard.backends.filter((backend) => {
      const dial = dialOf(backend);
      const owner = owners.get(dial) ?? shard.node;
      owners.set(dial, owner);
      if (owner === shard.node) return true;
      const reason = `node ${owner} has it as its own backend: two writers claim one address`;
      rejected.push({ node: shard.node, subject: `${backend.domain} ${dial}`, reason });
      return false;
    });
    return backends.length === shard.backends.length ? shard : { ...shard, backends };
  });
  return { shards: kept, rejected };
}
