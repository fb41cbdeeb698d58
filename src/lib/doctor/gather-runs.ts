// Reads what the state directory tells of runs, failures and holds, and who holds which lock.
import { readFile } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import { listSwitchedOff } from '../config/rules.ts';
import { concernOf } from '../failure/plan.ts';
import { readFailures } from '../failure/record.ts';
import { lockPath } from '../lock/flock.ts';
import { listLocks } from '../lock/list-locks.ts';
import { readRuns } from '../state/run-record.ts';
import type { ExpectedRun, judgeFailures, LockFacts, RunFacts } from './judge-runs.ts';
import type { World } from './world.ts';

export async function gatherLocks({ base }: World): Promise<LockFacts[]> {
  const { locksDir } = base.paths;
  const states = await listLocks(locksDir);
  return await Promise.all(
    states.map(async (state) => {
      const written = await readFile(lockPath(locksDir, state.name), 'utf8').catch(() => '');
      return { ...state, text: written.trim() !== '' };
    }),
  );
}

export async function gatherRuns(world: World): Promise<RunFacts> {
  const { base, now } = world;
  const units = (await world.units()) ?? [];
  const timers = units.filter(({ unit, active }) => unit.endsWith('.timer') && active === 'active');
  return {
    runs: await readRuns({ paths: base.paths, now, log: base.log }),
    expected: expectedRuns(world),
    off: switchedOff(world),
    hasTimers: timers.length > 0,
    timersForMs: Math.min(...timers.map(({ activeForMs = Number.POSITIVE_INFINITY }) => activeForMs)),
  };
}

/** What `--window` of the units of `listen` and `claim` says, in milliseconds. */
const windowMs = 15 * 60_000;

function expectedRuns({ config }: World): ExpectedRun[] {
  const { cluster, jobs, actions } = config ?? {};
  const isNode = cluster?.nodeId !== undefined;
  const has = (role: 'app' | 'edge'): boolean => isNode && cluster.roles.includes(role);
  const { tickMs = 0, edgeMs = 0 } = cluster?.intervals ?? {};
  const beats = listBeats(config ?? {});
  return [
    ...(has('app') ? [{ concern: 'reconcile', everyMs: tickMs }] : []),
    ...(has('edge') ? [{ concern: 'edge', everyMs: edgeMs }] : []),
    ...(beats.length === 0 ? [] : [{ concern: 'heartbeat', everyMs: Math.min(...beats) }]),
    ...(isNode && cluster.notify === 'sns' ? [{ concern: 'listen', everyMs: windowMs }] : []),
    ...(jobs === undefined ? [] : [{ concern: 'claim', everyMs: windowMs }]),
    ...(actions === undefined ? [] : listActionRuns(actions)),
  ];
}

/** As often as their timers come, and for the first and the last as long as one with much to do takes. */
function listActionRuns({ node, root }: NonNullable<Config['actions']>): ExpectedRun[] {
  const ofNode = [
    { concern: 'rsync-pull', everyMs: 120_000 },
    { concern: 'deploy-action', everyMs: 5 * 60_000, toldBy: 'reeve history' },
  ];
  const ofControl = [{ concern: 'action', command: 'action dispatch --settle', everyMs: 60_000 }];
  return [...(node === '' ? [] : ofNode), ...(root === undefined ? [] : ofControl)];
}

function listBeats({ cluster, jobs, commands }: Partial<Config>): number[] {
  return [
    ...(cluster?.nodeId === undefined ? [] : [cluster.intervals.livenessMs]),
    ...(jobs === undefined ? [] : [jobs.heartbeat.intervalMs]),
    ...(commands === undefined ? [] : [commands.heartbeatIntervalMs]),
  ];
}

/** What a configuration wants that cannot be read nobody knows. */
function switchedOff({ config }: World): ReadonlySet<string> {
  return config === undefined ? new Set() : listSwitchedOff(config);
}

/** Without those of units that are switched off: no good run will ever follow them. */
export async function gatherFailures(world: World): Promise<Parameters<typeof judgeFailures>[0]> {
  const { base, now } = world;
  const about = { paths: base.paths, now, log: base.log };
  const runs = new Map((await readRuns(about)).map((run) => [run.concern, run.lastGoodAt]));
  const failures = await readFailures(about);
  const off = switchedOff(world);
  return failures
    .map((record) => ({ record, concern: concernOf(record.unit) ?? '' }))
    .filter(({ concern }) => !off.has(concern.split('@')[0] ?? ''))
    .map(({ record, concern }) => ({ record, lastGoodAt: runs.get(concern) }));
}
