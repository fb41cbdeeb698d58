// What the running balancer has: asked of it at every look, never remembered.
import {
  parseBusyServers,
  parseDescription,
  parseServerStates,
  type ServerStates,
} from '../haproxy/parse.ts';
import { askRuntime } from '../haproxy/runtime.ts';
import { readStructure } from './balancer-file.ts';
import { balancerService, runtimeSocket } from './balancer-path.ts';

export type BalancerLive = {
  /** Undefined where it runs with another file than one of ours. */
  structure: string | undefined;
  servers: ServerStates;
};

type LiveOptions = { signal: AbortSignal };

export async function fetchBalancerLive(directory: string, { signal }: LiveOptions): Promise<BalancerLive> {
  const commands = ['show info', 'show servers state'];
  const options = { signal, service: balancerService };
  const [info = '', states = ''] = await askRuntime(runtimeSocket({ directory }), commands, options);
  return { structure: readStructure(parseDescription(info)), servers: parseServerStates(states) };
}

/** Those servers of some backends that have connections, as `BACKEND/SERVER`. */
export async function fetchBusyServers(
  directory: string,
  backends: readonly string[],
  { signal }: LiveOptions,
): Promise<ReadonlySet<string>> {
  const commands = backends.map((backend) => `show servers conn ${backend}`);
  const options = { signal, service: balancerService };
  const answers = await askRuntime(runtimeSocket({ directory }), commands, options);
  return new Set(answers.flatMap((answer) => [...parseBusyServers(answer)]));
}
