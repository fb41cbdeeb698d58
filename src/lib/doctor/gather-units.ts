// Asks systemd about our units.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CommandError } from '../errors.ts';
import { isSystemdRunning } from '../exec/systemd.ts';
import { compareUnits } from '../systemd/run.ts';
import { listUnitFiles, showUnits, type UnitProperties } from '../systemd/show.ts';
import { rootTarget, unitDirectory } from '../systemd/units.ts';
import type { UnitState } from './judge-units.ts';
import type { World } from './world.ts';

const properties = [
  'Id',
  'LoadState',
  'ActiveState',
  'SubState',
  'Result',
  'NextElapseUSecRealtime',
  'NextElapseUSecMonotonic',
  'WantedBy',
  'NeedDaemonReload',
  'ActiveEnterTimestampMonotonic',
  'ConditionResult',
  'ConditionTimestampMonotonic',
];

/** Installed units and loaded instances; undefined where systemd does not run or is not there. */
export async function gatherUnitStates(): Promise<UnitState[] | undefined> {
  try {
    const files = await listUnitFiles('reeve*');
    const named = files.filter((unit) => !unit.includes('@.'));
    const shown = named.length === 0 ? [] : await showUnits(named, properties);
    // Instances of templates have no files of their own.
    const instances = await showUnits(['reeve-*@*.service'], properties);
    return [...shown, ...instances].filter(({ Id }) => Id !== undefined).map(toState);
  } catch (error) {
    if (error instanceof CommandError && error.code !== 'timeout') return undefined;
    throw error;
  }
}

/** Which of these run, whether or not they are ours. */
export async function gatherActiveUnits(units: readonly string[]): Promise<string[]> {
  const shown = await showUnits(units, ['Id', 'ActiveState']);
  return shown
    .filter(({ ActiveState }) => ['active', 'activating', 'reloading'].includes(ActiveState ?? ''))
    .map(({ Id }) => Id ?? '');
}

function toState(shown: UnitProperties): UnitState {
  // systemd's clock and this one count alike: from the boot, whatever the time of day is set to.
  const activeForMs =
    Number(process.hrtime.bigint() / 1_000_000n) - Number(shown['ActiveEnterTimestampMonotonic']) / 1000;
  return {
    unit: shown['Id'] ?? '',
    load: shown['LoadState'] ?? '',
    active: shown['ActiveState'] ?? '',
    sub: shown['SubState'] ?? '',
    result: shown['Result'] ?? '',
    nextRealtime: shown['NextElapseUSecRealtime'] ?? '',
    nextMonotonic: shown['NextElapseUSecMonotonic'] ?? '',
    wantedBy: (shown['WantedBy'] ?? '').split(' ').filter((name) => name !== ''),
    needsReload: shown['NeedDaemonReload'] === 'yes',
    // Before a first start systemd says `no`, too.
    isUnneeded: shown['ConditionResult'] === 'no' && Number(shown['ConditionTimestampMonotonic']) > 0,
    ...(shown['ActiveState'] === 'active' && activeForMs >= 0 ? { activeForMs } : {}),
  };
}

/** What the configuration asks of the units and is not there; nothing where they are not installed. */
export async function gatherPendingChanges({ base, config }: World): Promise<string[]> {
  if (config === undefined || !isSystemdRunning() || !existsSync(join(unitDirectory, rootTarget))) return [];
  const { outcome, data } = await compareUnits({ ...base, config }, { root: '/' });
  if (outcome !== 'pending') return [];
  const changes = data?.['changes'] as readonly { unit: string }[];
  return [...new Set(changes.map(({ unit }) => unit))];
}
