// How the installed units stand: switched on, active, when next, how last. Read-only.
import { existsSync } from 'node:fs';
import type { BaseContext } from '../context.ts';
import { listAsJson, requireSystemd, runSystemctl } from '../exec/systemd.ts';
import type { Outcome } from '../outcome.ts';
import { renderTable } from '../report/table.ts';
import { formatDuration } from '../time.ts';
import { dropInPath } from './gather.ts';
import {
  type LoadedUnit,
  parseTimerRuns,
  parseUnitFiles,
  parseUnits,
  parseUnixTimestamp,
  type TimerRun,
  type UnitFile,
} from './parse.ts';
import { parseProperties } from './show.ts';
import { foreignUnits } from './units.ts';

export type UnitState = {
  unit: string;
  /** As of `systemctl is-enabled`; `static` is what a target wants by itself. */
  enabled: string;
  active: string;
  sub: string;
  /** Timers only. */
  nextAt?: string;
  /** The service that a timer starts is running, so that its next run is not known yet. */
  running?: boolean;
  /** Services that have run only. */
  lastResult?: string;
  lastEndedAt?: string;
};

export async function listUnits(base: BaseContext): Promise<Outcome> {
  requireSystemd('list units');
  const states = await readUnitStates(base.signal);
  const now = base.clock.now();
  const rows = states.map((state) => [
    state.unit,
    state.enabled,
    state.active,
    tellNext(state, now),
    tellLast(state, now),
  ]);
  return {
    outcome: 'done',
    text:
      rows.length === 0
        ? ['no unit of reeve is installed: scripts/install does it']
        : renderTable(['UNIT', 'ENABLED', 'ACTIVE', 'NEXT RUN', 'LAST RUN'], rows),
    data: { units: states },
  };
}

/**
 * Installed unit files and loaded instances, sorted by name: targets first, then what they start. Units of others that
 * have a drop-in of ours are among them.
 */
export async function readUnitStates(signal: AbortSignal): Promise<UnitState[]> {
  const named = ['reeve*', ...foreignUnits.filter((unit) => existsSync(dropInPath('/', unit)))];
  const [files, loaded, runs] = await Promise.all([
    // Status 1 is "nothing matches" in newer versions.
    listAsJson(['list-unit-files', ...named], { signal, okStatuses: [0, 1] }).then(parseUnitFiles),
    listAsJson(['list-units', '--all', ...named], { signal }).then(parseUnits),
    listAsJson(['list-timers', '--all', 'reeve*'], { signal }).then(parseTimerRuns),
  ]);
  // Instances that OnFailure= names are loaded and have nothing to tell until they run.
  const present = loaded.filter(({ unit, active }) => !/@.+\./.test(unit) || active !== 'inactive');
  const names = new Set([...files, ...present].map(({ unit }) => unit));
  const isRunnable = (unit: string): boolean => unit.endsWith('.service') && !unit.includes('@.');
  const ends = await readServiceEnds([...names].filter(isRunnable), signal);
  return [...names].sort(compareUnits).map((unit) => describeUnit(unit, { files, loaded, runs, ends }));
}

/** When each timer fires next, by its unit's name. */
export async function readNextRuns(signal: AbortSignal): Promise<ReadonlyMap<string, Date>> {
  const runs = parseTimerRuns(await listAsJson(['list-timers', '--all', 'reeve*'], { signal }));
  return new Map(runs.flatMap(({ unit, nextAt }) => (nextAt === undefined ? [] : [[unit, nextAt] as const])));
}

/** Looks alive and will never start anything again. */
export function isStalledTimer({ unit, active, nextAt, running }: UnitState): boolean {
  return unit.endsWith('.timer') && active === 'active' && nextAt === undefined && running !== true;
}

type ServiceEnds = ReadonlyMap<string, { result: string; endedAt: Date }>;
type Listed = {
  files: readonly UnitFile[];
  loaded: readonly LoadedUnit[];
  runs: readonly TimerRun[];
  ends: ServiceEnds;
};

async function readServiceEnds(units: readonly string[], signal: AbortSignal): Promise<ServiceEnds> {
  if (units.length === 0) return new Map();
  const args = ['show', '--timestamp=unix', '-p', 'Id,Result,InactiveEnterTimestamp', '--', ...units];
  const { stdout } = await runSystemctl(args, { signal });
  return new Map(
    parseProperties(stdout).flatMap((shown) => {
      const endedAt = parseUnixTimestamp(shown['InactiveEnterTimestamp']);
      const [unit, result] = [shown['Id'], shown['Result']];
      return endedAt === undefined || unit === undefined || result === undefined
        ? []
        : [[unit, { result, endedAt }] as const];
    }),
  );
}

function describeUnit(unit: string, { files, loaded, runs, ends }: Listed): UnitState {
  const about = loaded.find((other) => other.unit === unit);
  const run = runs.find((other) => other.unit === unit);
  const end = ends.get(unit);
  const serviceState = loaded.find((other) => other.unit === unit.replace(/\.timer$/, '.service'))?.active;
  return {
    unit,
    enabled: files.find((file) => file.unit === unit)?.state ?? '-',
    active: about?.active ?? 'inactive',
    sub: about?.sub ?? 'dead',
    ...(run?.nextAt === undefined ? {} : { nextAt: run.nextAt.toISOString() }),
    ...(unit.endsWith('.timer') ? { running: runningStates.includes(serviceState ?? '') } : {}),
    ...(end === undefined ? {} : { lastResult: end.result, lastEndedAt: end.endedAt.toISOString() }),
  };
}

/** Of a oneshot the first, of a window the second. */
const runningStates: readonly string[] = ['activating', 'active', 'deactivating'];

function tellNext(state: UnitState, now: Date): string {
  if (isStalledTimer(state)) return 'NEVER';
  if (state.nextAt === undefined) return state.running === true ? 'after this run' : '-';
  const inMs = Date.parse(state.nextAt) - now.getTime();
  return inMs <= 0 ? 'now' : `in ${formatDuration(inMs)}`;
}

function tellLast({ lastResult, lastEndedAt }: UnitState, now: Date): string {
  if (lastResult === undefined || lastEndedAt === undefined) return '-';
  return `${lastResult}, ${formatDuration(Math.max(0, now.getTime() - Date.parse(lastEndedAt)))} ago`;
}

const kinds = ['target', 'timer', 'path', 'socket', 'service'];

function compareUnits(a: string, b: string): number {
  const kindOf = (unit: string): number => kinds.indexOf(unit.slice(unit.lastIndexOf('.') + 1));
  if (kindOf(a) !== kindOf(b)) return kindOf(a) - kindOf(b);
  return a < b ? -1 : 1;
}
