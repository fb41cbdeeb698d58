// Reads what the master of a HAProxy and its workers answer about processes, maps and sessions. Pure.

export type Worker = {
  pid: number;
  /** Of before a reload: it takes nothing new and stays for its tunnels. */
  isOld: boolean;
};

/** Out of the master's `show proc`, the current one first. None where the master had no time to answer. */
export function parseWorkers(processes: string): Worker[] {
  const workers: Worker[] = [];
  let isOld = false;
  for (const line of processes.split('\n')) {
    if (line.startsWith('# ')) isOld = line.startsWith('# old workers');
    const pid = /^(\d+) +worker\b/.exec(line)?.[1];
    if (pid !== undefined) workers.push({ pid: Number(pid), isOld });
  }
  return workers.sort((left, right) => Number(left.isOld) - Number(right.isOld));
}

/** Values by key, in their order: of two of one key the first one counts. */
export type ShownMap = ReadonlyMap<string, readonly string[]>;

/** Out of `show map`, whose lines begin with an address. */
export function parseShownMap(answer: string): ShownMap {
  const entries = new Map<string, string[]>();
  for (const line of answer.split('\n')) {
    const [, key, value = ''] = /^0x[0-9a-f]+ (\S+) ?(.*)$/.exec(line.trim()) ?? [];
    if (key === undefined) continue;
    const values = entries.get(key);
    if (values === undefined) entries.set(key, [value]);
    else values.push(value);
  }
  return entries;
}

/** Out of `get map`; undefined where there is no such key. */
export function parseGotMap(answer: string): string | undefined {
  return /\bfound=yes\b.*? value="([^"]*)"/.exec(answer)?.[1];
}

/** Sessions of a backend at this moment, out of `show stat`, whose columns are named in its first line. */
export function parseSessions(stats: string, backend: string): number | undefined {
  const [header = '', ...lines] = stats.replace(/^# /, '').split('\n');
  const column = header.split(',').indexOf('scur');
  const row = lines
    .map((line) => line.split(','))
    .find(([name, kind]) => name === backend && kind === 'BACKEND');
  const count = Number(row?.[column] || 'none');
  return Number.isSafeInteger(count) ? count : undefined;
}

/** Ids of a backend's sessions, out of `show sess`. */
export function parseSessionIds(sessions: string, backend: string): string[] {
  return sessions
    .split('\n')
    .filter((line) => line.includes(` be=${backend} `))
    .flatMap((line) => /^(0x[0-9a-f]+):/.exec(line)?.[1] ?? []);
}
