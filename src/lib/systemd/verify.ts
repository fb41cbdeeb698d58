// Checks unit files as a machine would meet them: their syntax, how far their sandbox keeps them in, and where systemd runs
// that every timer has a next run.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { ConfigError, systemErrorCode } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { fileError } from '../state/file-error.ts';
import { isSystemdRunning, runAnalyze } from './invocation.ts';
import { isStalledTimer, readUnitStates } from './list.ts';
import { exposureLimit, unitDirectory } from './units.ts';

/** `root`: the directory that stands for `/`, for an image. Drop-ins count. */
export async function verifyUnits(base: BaseContext, { root }: { root: string }): Promise<Outcome> {
  const paths = await listUnitPaths(root);
  const isImage = root !== '/';
  const tool: Tool = { rootArgs: isImage ? [`--root=${root}`] : [], signal: base.signal };
  const problems = [
    ...(await checkSyntax(paths, tool)),
    ...(await checkExposure(paths, tool)),
    ...(!isImage && isSystemdRunning() ? await checkTimers(base) : []),
  ];
  return {
    outcome: problems.length === 0 ? 'done' : 'failed',
    text: problems.length === 0 ? [`${paths.length} units are right`] : problems,
    data: { units: paths, problems },
  };
}

type Tool = { rootArgs: readonly string[]; signal: AbortSignal };

/** As the machine has them, without the root of an image. */
async function listUnitPaths(root: string): Promise<string[]> {
  const directory = join(root, unitDirectory);
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
  const units = names.filter((name) => /^reeve.*\.(target|timer|path|socket|service)$/.test(name));
  if (units.length > 0) return units.sort().map((name) => join(unitDirectory, name));
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

async function checkExposure(paths: readonly string[], { rootArgs, signal }: Tool): Promise<string[]> {
  const problems: string[] = [];
  for (const path of paths.filter((name) => name.endsWith('.service'))) {
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
