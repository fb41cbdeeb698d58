// What the running balancer has: asked of it at every look, never remembered.
import { createHash } from 'node:crypto';
import {
  describeReadyServers,
  parseBusyServers,
  parseDescription,
  parseServerHealth,
  parseServerStates,
  parseVersion,
  type ServerHealth,
  type ServerStates,
} from '../haproxy/parse.ts';
import { askRuntime } from '../haproxy/runtime.ts';
import { readStructure } from './balancer-file.ts';
import { balancerService, runtimeSocket } from './balancer-path.ts';
import { domainOf } from './route.ts';

export type BalancerLive = {
  /** Undefined where it runs with another file than one of ours. */
  structure: string | undefined;
  servers: ServerStates;
};

type LiveOptions = { signal: AbortSignal; timeoutMs?: number };

export async function fetchBalancerLive(directory: string, { signal }: LiveOptions): Promise<BalancerLive> {
  const commands = ['show info', 'show servers state'];
  const options = { signal, service: balancerService };
  const [info = '', states = ''] = await askRuntime(runtimeSocket({ directory }), commands, options);
  return { structure: readStructure(parseDescription(info)), servers: parseServerStates(states) };
}

/**
 * What it serves, and nothing of how it fares, as one hash. Undefined while a server is not ready: one that is drained has
 * to be looked at until nothing uses it any more.
 */
export async function fetchBalancerStamp(
  directory: string,
  { signal }: LiveOptions,
): Promise<string | undefined> {
  const commands = ['show info', 'show servers state'];
  const options = { signal, service: balancerService };
  const [info = '', states = ''] = await askRuntime(runtimeSocket({ directory }), commands, options);
  const servers = describeReadyServers(states);
  if (servers === undefined) return undefined;
  const text = [parseDescription(info) ?? '', servers].join('\n');
  return createHash('sha256').update(text).digest('hex');
}

/** Servers that have connections, as `BACKEND/SERVER`. */
export async function fetchBusyServers(
  directory: string,
  { signal }: LiveOptions,
): Promise<ReadonlySet<string>> {
  const options = { signal, service: balancerService };
  const [answer = ''] = await askRuntime(runtimeSocket({ directory }), ['show servers conn'], options);
  return parseBusyServers(answer);
}

export type BalancerHealth = {
  version: string | undefined;
  /** By domain. */
  domains: ReadonlyMap<string, ServerHealth>;
};

/** For people: how what it serves fares. */
export async function fetchBalancerHealth(directory: string, options: LiveOptions): Promise<BalancerHealth> {
  const commands = ['show info', 'show servers state'];
  const asked = { ...options, service: balancerService };
  const [info = '', states = ''] = await askRuntime(runtimeSocket({ directory }), commands, asked);
  const health = [...parseServerHealth(states)];
  return {
    version: parseVersion(info),
    domains: new Map(health.map(([backend, servers]) => [domainOf(backend), servers])),
  };
}
