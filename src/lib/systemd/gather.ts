// What of ours is below /etc/systemd/system: drop-ins and the links that switch units on.
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Overrides, readOverrides } from '../config/environment.ts';
import { systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import type { UnitFacts } from './facts.ts';
import { parseEnvironment } from './parse.ts';
import { dropInName } from './render.ts';
import { environmentFile, foreignUnits, machineDirectory, rootTarget, switches } from './units.ts';

/** `root`: the directory that stands for `/`. */
export async function gatherUnits(root: string): Promise<UnitFacts> {
  const directory = join(root, machineDirectory);
  const dropIns = new Map<string, string>();
  for (const name of (await ignoreMissing(directory, readdir(directory))) ?? []) {
    const unit = /^(.+)\.d$/.exec(name)?.[1];
    if (unit === undefined || !(unit.startsWith('reeve') || foreignUnits.includes(unit))) continue;
    const path = join(directory, name, dropInName);
    const text = await ignoreMissing(path, readFile(path, 'utf8'));
    if (text !== undefined) dropIns.set(unit, text);
  }
  const enabled = new Set<string>();
  for (const { unit } of switches) {
    const link = wantsPath(root, unit);
    if ((await ignoreMissing(link, lstat(link))) !== undefined) enabled.add(unit);
  }
  return { dropIns, enabled };
}

/** What units read by `EnvironmentFile=`; empty where there is no such file. */
export async function gatherEnvironment(root: string): Promise<Overrides> {
  const path = join(root, environmentFile);
  const text = await ignoreMissing(path, readFile(path, 'utf8'));
  return readOverrides(parseEnvironment(text ?? ''));
}

export function dropInPath(root: string, unit: string): string {
  return join(root, machineDirectory, `${unit}.d`, dropInName);
}

/** The link that `systemctl enable` makes for the unit's `WantedBy=`. */
export function wantsPath(root: string, unit: string): string {
  const wantedBy = switches.find((other) => other.unit === unit)?.wantedBy ?? rootTarget;
  return join(root, machineDirectory, `${wantedBy}.wants`, unit);
}

async function ignoreMissing<T>(path: string, operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw fileError('read', path, error);
  }
}
