// Checks unit files as a machine would meet them: their syntax, how far their sandbox keeps them in, and where systemd runs
// that every timer has a next run.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { ConfigError, systemErrorCode } from '../errors.ts';
import { isSystemdRunning, runAnalyze } from '../exec/systemd.ts';
import type { Outcome } from '../outcome.ts';
import { fileError } from '../state/file-error.ts';
import { dropInPath } from './gather.ts';
import { isStalledTimer, readUnitStates } from './list.ts';
import { dropInName } from './render.ts';
import {
  exposedUnits,
  exposureLimit,
  foreignUnits,
  machineDirectory,
  neededPrograms,
  unitDirectory,
} from './units.ts';

/** `root`: the directory that stands for `/`, for an image. Drop-ins count. */
export async function verifyUnits(base: BaseContext, { root }: { root: string }): Promise<Outcome> {
  const paths = await listUnitPaths(root);
  const isImage = root !== '/';
  const tool: Tool = { rootArgs: isImage ? [`--root=${root}`] : [], signal: base.signal };
  const others = foreignUnits.filter((unit) => isOursToo(root, unit));
  const problems = [
    ...(await checkSyntax(paths, tool)),
    ...(await checkDropIns(others, tool)),
    ...(await checkExposure(paths, tool)),
    ...(!isImage && isSystemdRunning() ? await checkTimers(base) : []),
  ];
  return {
    outcome: problems.length === 0 ? 'done' : 'failed',
    text: problems.length === 0 ? [`${paths.length + others.length} units are right`] : problems,
    data: { units: [...paths, ...others], problems },
  };
}

type Tool = { rootArgs: readonly string[]; signal: AbortSignal };

/** A unit of others that is installed and has a drop-in of ours. */
function isOursToo(root: string, unit: string): boolean {
  const directories = [machineDirectory, unitDirectory, '/lib/systemd/system'];
  return (
    existsSync(dropInPath(root, unit)) &&
    directories.some((directory) => existsSync(join(root, directory, unit)))
  );
}

/** As the machine has them, without the root of an image; none whose program is missing, which is never started. */
async function listUnitPaths(root: string): Promise<string[]> {
  const directory = join(root, unitDirectory);
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
  const units = names.filter((name) => /^reeve.*\.(target|timer|path|socket|service)$/.test(name));
  const isUsable = (unit: string): boolean => existsSync(join(root, neededPrograms[unit] ?? '/'));
  if (units.length > 0)
    return units
      .filter(isUsable)
      .sort()
      .map((name) => join(unitDirectory, name));
  throw new ConfigError(
    `cannot verify units: there is none of reeve in ${directory}; scripts/install puts them there`,
  );
}

/** A misspelt setting is a warning on stderr, with status 0: whatever it says is a problem. */
async function checkSyntax(paths: readonly string[], { rootArgs, signal }: Tool): Promise<string[]> {
  // Only of these units: those that they refer to are the machine's business.
  const args = ['verify', ...rootArgs, '--recursive-errors=no', ...paths];
  const { status, stdout, stderr } = await runAnalyze(args, { signal, okStatuses: anyStatus });
  const said = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  return said.length === 0 && status !== 0 ? [`systemd-analyze verify ended with status ${status}`] : said;
}

/** What else is wrong with such a unit is its owner's business. */
async function checkDropIns(units: readonly string[], tool: Tool): Promise<string[]> {
  if (units.length === 0) return [];
  const said = await checkSyntax(units, tool);
  return said.filter(
    (line) => line.includes(`/${dropInName}:`) || units.some((unit) => line.startsWith(`${unit}:`)),
  );
}

async function checkExposure(paths: readonly string[], { rootArgs, signal }: Tool): Promise<string[]> {
  const problems: string[] = [];
  const judged = paths.filter((path) => path.endsWith('.service') && !exposedUnits.includes(basename(path)));
  for (const path of judged) {
    const args = ['security', ...rootArgs, '--offline=true', `--threshold=${exposureLimit}`, path];
    const { status, stdout, stderr } = await runAnalyze(args, { signal, okStatuses: anyStatus });
    if (status === 0) continue;
    const summary = /exposure level for .*: ([\d.]+)/.exec(stdout)?.[1];
    const told = summary === undefined ? stderr.trim() || `status ${status}` : `its exposure is ${summary}`;
    problems.push(`${path}: ${told}, more than ${exposureLimit / 10}`);
  }
  return problems;
}

/** A timer is without a next run for the moment between its service's start and the news of it: only what lasts counts. */
async function checkTimers({ clock, signal }: BaseContext): Promise<string[]> {
  let stalled: string[] = [];
  for (let look = 0; look < timerLooks; look += 1) {
    if (look > 0) await clock.sleep(betweenLooksMs, signal);
    const now = (await readUnitStates(signal)).filter(isStalledTimer).map(({ unit }) => unit);
    stalled = look === 0 ? now : stalled.filter((unit) => now.includes(unit));
    if (stalled.length === 0) return [];
  }
  return stalled.map((unit) => `${unit} has no next run: \`systemctl restart ${unit}\``);
}

const timerLooks = 4;
const betweenLooksMs = 250;
const anyStatus = [0, 1];
