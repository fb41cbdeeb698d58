// Reads what HAProxy answers. Pure.
import { UnavailableError } from '../errors.ts';

/**
 * What an operator has said, not what health checks found: `maint` takes nothing, `drain` nothing new, and `altered` has
 * another address or weight than it was made with.
 */
export type ServerState = 'ready' | 'drain' | 'maint' | 'altered';

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

export type Reloads = {
  /** Since its start, good or not. */
  count: number;
  /** Those since the last good one. */
  failed: number;
};

/** Out of the master's `show proc`; undefined if it does not tell. */
export function parseReloads(processes: string): Reloads | undefined {
  const match = /^\d+ +master +(\d+) +\[failed: (\d+)\]/m.exec(processes);
  return match === null ? undefined : { count: Number(match[1]), failed: Number(match[2]) };
}

/** Bits of `srv_admin_state`, each for another way into the state. */
const maintenanceBits = 0x01 | 0x02 | 0x04 | 0x20 | 0x40;
const drainBits = 0x08 | 0x10;

/** Out of `show servers state`. */
export function parseServerStates(answer: string): ServerStates {
  const states = new Map<string, Map<string, ServerState>>();
  for (const line of readServers(answer)) {
    const servers = states.get(line.backend);
    if (servers === undefined) states.set(line.backend, new Map([[line.server, stateOf(line)]]));
    else servers.set(line.server, stateOf(line));
  }
  return states;
}

/**
 * What is the same as long as nobody has changed a server, in one text; undefined where one of them is not ready. For a look
 * that has nothing to do: thousands of lines without a value for each of their fields.
 */
export function describeReadyServers(answer: string): string | undefined {
  const { columns, start } = readHeader(answer);
  const last = Math.max(...columnNames.map((name) => columns.indexOf(name)));
  const kept = columns.slice(0, last + 1).map((name) => (settledColumns.has(name) ? '(\\S+)' : '\\S+'));
  const line = new RegExp(`^${kept.join(' ')} .*$`, 'gm');
  const places = Array.from(settledColumns, (_, index) => `$${index + 1}`);
  const text = answer.slice(start).replace(line, places.join(' '));
  const bitsAt = columns.filter((name) => settledColumns.has(name)).indexOf('srv_admin_state');
  return new RegExp(`^(?:\\S+ ){${bitsAt}}(?!0 )`, 'm').test(text) ? undefined : text;
}

/** How a backend's servers fare, by checks and by what they have answered. */
export type ServerHealth = {
  /** Of servers that an operator has not taken out. */
  up: number;
  /** Names of those that are down. */
  down: readonly string[];
};

/** By backend, out of `show servers state`. */
export function parseServerHealth(answer: string): ReadonlyMap<string, ServerHealth> {
  const health = new Map<string, { up: number; down: string[] }>();
  for (const { backend, server, bits, health: state } of readServers(answer)) {
    const known = health.get(backend) ?? { up: 0, down: [] };
    health.set(backend, known);
    if (bits !== '0') continue;
    if (state === '0') known.down.push(server);
    else known.up += 1;
  }
  return health;
}

/** `bits` is what an operator has said, `health` what checks have found; as HAProxy writes them. */
type ServerLine = {
  backend: string;
  server: string;
  address: string;
  health: string;
  bits: string;
  weight: string;
  firstWeight: string;
  port: string;
};

const columnNames = [
  'be_name',
  'srv_name',
  'srv_addr',
  'srv_op_state',
  'srv_admin_state',
  'srv_uweight',
  'srv_iweight',
  'srv_port',
];

/** Of those, what checks and time do not change. */
const settledColumns: ReadonlySet<string> = new Set([
  'be_name',
  'srv_name',
  'srv_addr',
  'srv_admin_state',
  'srv_uweight',
  'srv_iweight',
  'srv_port',
]);

/** A version and the columns' names stand before the servers. */
function readHeader(answer: string): { columns: string[]; start: number } {
  const [version = '', header = ''] = answer.split('\n', 2);
  const columns = header.replace(/^# /, '').split(' ');
  if (version !== '1' || columnNames.some((name) => !columns.includes(name))) {
    throw new UnavailableError('cannot read the servers of HAProxy: its answer has another form');
  }
  return { columns, start: version.length + header.length + 2 };
}

function* readServers(answer: string): Generator<ServerLine> {
  const { columns, start } = readHeader(answer);
  const places = columnNames.map((name) => columns.indexOf(name));
  // Thousands of lines with two dozen fields each: no more of them than are needed.
  const fieldsRead = Math.max(...places) + 1;
  for (const line of linesAfter(answer, start)) {
    const fields = line.split(' ', fieldsRead);
    if (fields.length < fieldsRead) continue;
    const [backend, server, address, health, bits, weight, firstWeight, port] = places.map(
      (place) => fields[place] as string,
    ) as [string, string, string, string, string, string, string, string];
    yield { backend, server, address, health, bits, weight, firstWeight, port };
  }
}

function* linesAfter(text: string, start: number): Generator<string> {
  for (let at = start; at < text.length; ) {
    const end = text.indexOf('\n', at);
    const next = end < 0 ? text.length : end;
    yield text.slice(at, next);
    at = next + 1;
  }
}

function stateOf(line: ServerLine): ServerState {
  const bits = Number(line.bits);
  if ((bits & maintenanceBits) !== 0) return 'maint';
  if ((bits & drainBits) !== 0) return 'drain';
  return isAltered(line) ? 'altered' : 'ready';
}

/** Ours are named for their address and port. An IPv6 address has many spellings: there it is the port alone. */
function isAltered({ server, address, port, weight, firstWeight }: ServerLine): boolean {
  const colon = server.lastIndexOf(':');
  const [host, namedPort] = [server.slice(0, colon), server.slice(colon + 1)];
  if (colon < 0 || !/^\d+$/.test(namedPort)) return false;
  return port !== namedPort || weight !== firstWeight || (!host.includes(':') && address !== host);
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
