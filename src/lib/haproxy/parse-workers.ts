// Reads what the master of a HAProxy and its workers answer about processes, maps and sessions. Pure.

export type Worker = {
  pid: number;
  /** Of before a reload: it takes nothing new and stays for its tunnels. */
  isOld: boolean;
  /** For how long at least; undefined of the current one, and where it cannot be told. */
  oldForMs?: number;
};

/** `reloads`: how many there have been since its start, so that the next lower number is of the worker that came after it. */
type Row = { pid: number; isOld: boolean; reloads: number; uptimeMs: number | undefined };

/** Out of the master's `show proc`, the current one first. None where the master had no time to answer. */
export function parseWorkers(processes: string): Worker[] {
  const rows: Row[] = [];
  let isOld = false;
  for (const line of processes.split('\n')) {
    if (line.startsWith('# ')) isOld = line.startsWith('# old workers');
    const [, pid, reloads, uptime = ''] = /^(\d+) +worker\b *(\d+)? *(\S+)?/.exec(line) ?? [];
    if (pid === undefined) continue;
    rows.push({ pid: Number(pid), isOld, reloads: Number(reloads), uptimeMs: parseUptime(uptime) });
  }
  const workers = rows.map((row): Worker => {
    const oldForMs = findAge(row, rows);
    return { pid: row.pid, isOld: row.isOld, ...(oldForMs === undefined ? {} : { oldForMs }) };
  });
  return workers.sort((left, right) => Number(left.isOld) - Number(right.isOld));
}

/** As old as the next one is that has not ended: no older than it is in truth. Whole seconds of HAProxy's are one too many. */
function findAge({ isOld, reloads }: Row, rows: readonly Row[]): number | undefined {
  if (!isOld) return undefined;
  const [next] = rows
    .filter((row) => row.reloads < reloads)
    .sort((left, right) => right.reloads - left.reloads);
  return next?.uptimeMs === undefined ? undefined : Math.max(0, next.uptimeMs - 1_000);
}

/** `0d00h01m05s`; a clock that was set back makes a number of it that is none. */
function parseUptime(text: string): number | undefined {
  const found = /^(\d+)d(\d+)h(\d+)m(\d+)s$/.exec(text);
  if (found === null) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = found.slice(1).map(Number);
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
}

/** Entries by key, in their order: of two of one key the first one counts. By its reference each can be named, whatever its key. */
export type ShownMap = ReadonlyMap<string, readonly ShownEntry[]>;
export type ShownEntry = { ref: string; value: string };

/** Out of `show map`, whose lines begin with an address, the reference. */
export function parseShownMap(answer: string): ShownMap {
  const entries = new Map<string, ShownEntry[]>();
  for (const line of answer.split('\n')) {
    const [, ref = '', key, value = ''] = /^(0x[0-9a-f]+) (\S+) ?(.*)$/.exec(line.trim()) ?? [];
    if (key === undefined) continue;
    const found = entries.get(key);
    if (found === undefined) entries.set(key, [{ ref, value }]);
    else found.push({ ref, value });
  }
  return entries;
}

/** Out of `get map`; undefined where there is no such key. */
export function parseGotMap(answer: string): string | undefined {
  return /\bfound=yes\b.*? value="([^"]*)"/.exec(answer)?.[1];
}

/** Sessions of a backend at this moment, out of `show stat`. */
export function parseSessions(stats: string, backend: string): number | undefined {
  const count = [...readSessions(stats)].find(([name]) => name === backend)?.[1];
  return Number.isSafeInteger(count) ? count : undefined;
}

/** The same of all backends together: requests, from their first byte on, and tunnels. */
export function sumSessions(stats: string): number {
  return [...readSessions(stats)].reduce((sum, [, count]) => sum + count, 0);
}

/** By backend; NaN where it does not say. The columns are named in the first line. */
function* readSessions(stats: string): Generator<[backend: string, count: number]> {
  const [header = '', ...lines] = stats.replace(/^# /, '').split('\n');
  const column = header.split(',').indexOf('scur');
  for (const line of lines) {
    const fields = line.split(',');
    const [name = '', kind] = fields;
    if (kind === 'BACKEND') yield [name, Number(fields[column] || 'none')];
  }
}

/** Ids of a backend's sessions, out of `show sess`. */
export function parseSessionIds(sessions: string, backend: string): string[] {
  return sessions
    .split('\n')
    .filter((line) => line.includes(` be=${backend} `))
    .flatMap((line) => /^(0x[0-9a-f]+):/.exec(line)?.[1] ?? []);
}
