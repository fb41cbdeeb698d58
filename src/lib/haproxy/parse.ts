// Reads what HAProxy answers. Pure.
import { UnavailableError } from '../errors.ts';

/** What an operator has said, not what health checks found: `maint` takes nothing, `drain` nothing new. */
export type ServerState = 'ready' | 'drain' | 'maint';

/** States by server, by backend. */
export type ServerStates = ReadonlyMap<string, ReadonlyMap<string, ServerState>>;

/** `description` of the running process, out of `show info`. */
export function parseDescription(info: string): string | undefined {
  return /^description: (.*)$/im.exec(info)?.[1]?.trimEnd();
}

/** Out of `show info`. */
export function parseVersion(info: string): string | undefined {
  return /^Version: (\S+)/im.exec(info)?.[1];
}

/** Workers of before a reload that still have something to end, out of the master's `show proc`. */
export function countOldWorkers(processes: string): number {
  const old = /^# old workers\n((?:(?!#).*\n?)*)/m.exec(processes)?.[1] ?? '';
  return old.split('\n').filter((line) => /\bworker\b/.test(line)).length;
}

/** Reloads since the last good one that the master gave up, out of its `show proc`. */
export function parseFailedReloads(processes: string): number {
  return Number(/\[failed: (\d+)\]/.exec(processes)?.[1] ?? 0);
}

/** Bits of `srv_admin_state`, each for another way into the state. */
const maintenanceBits = 0x01 | 0x02 | 0x04 | 0x20 | 0x40;
const drainBits = 0x08 | 0x10;

/** Out of `show servers state`: a version, the names of the columns, a line a server. */
export function parseServerStates(answer: string): ServerStates {
  const [version, header = '', ...lines] = answer.split('\n');
  const columns = header.replace(/^# /, '').split(' ');
  const [backendAt, serverAt, stateAt] = ['be_name', 'srv_name', 'srv_admin_state'].map((name) =>
    columns.indexOf(name),
  ) as [number, number, number];
  if (version !== '1' || Math.min(backendAt, serverAt, stateAt) < 0) {
    throw new UnavailableError('cannot read the servers of HAProxy: its answer has another form');
  }
  const states = new Map<string, Map<string, ServerState>>();
  for (const line of lines) {
    const fields = line.split(' ');
    const [backend, server, state] = [fields[backendAt], fields[serverAt], fields[stateAt]];
    if (backend === undefined || server === undefined || state === undefined) continue;
    const servers = states.get(backend);
    if (servers === undefined) states.set(backend, new Map([[server, stateOf(Number(state))]]));
    else servers.set(server, stateOf(Number(state)));
  }
  return states;
}

function stateOf(bits: number): ServerState {
  if ((bits & maintenanceBits) !== 0) return 'maint';
  return (bits & drainBits) !== 0 ? 'drain' : 'ready';
}

/** Servers that have connections, as `BACKEND/SERVER`, out of `show servers conn`. */
export function parseBusyServers(answer: string): ReadonlySet<string> {
  const [header = '', ...lines] = answer.split('\n');
  const columns = header.replace(/^# /, '').split(' ');
  const [nameAt, usedAt, idleAt] = ['bkname/svname', 'used_cur', 'idle_cur'].map((name) =>
    columns.indexOf(name),
  ) as [number, number, number];
  if (Math.min(nameAt, usedAt, idleAt) < 0) {
    throw new UnavailableError('cannot read the connections of HAProxy: its answer has another form');
  }
  const busy = lines
    .map((line) => line.split(' '))
    .filter((fields) => fields[usedAt] !== '0' || fields[idleAt] !== '0');
  return new Set(busy.flatMap((fields) => fields[nameAt] || []));
}
