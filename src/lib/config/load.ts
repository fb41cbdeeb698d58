// The configuration of this run: the compiled form where nothing has changed, else compiled anew. Nothing heavy is
// imported here: timers pay for it thousands of times a day.
import { ConfigError } from '../errors.ts';
import { type Log, silentLog } from '../report/log.ts';
import { version as ownVersion } from '../version.ts';
import { compiledKey, readCompiled, writeCompiled } from './compiled.ts';
import type { Config } from './config.ts';
import type { Overrides } from './environment.ts';
import type { Paths } from './paths.ts';
import { readSource, type Source } from './sources.ts';

/** A build's chunks are named by their content, so another build of the same version has another identity. */
const buildId = import.meta.url.slice(import.meta.url.lastIndexOf('/') + 1);

export type LoadOptions = { log?: Log; version?: string };

/** Throws ConfigError that lists everything wrong, one line each. */
export async function loadConfig(
  paths: Paths,
  overrides: Overrides,
  options: LoadOptions = {},
): Promise<Config> {
  return (await loadConfigAndFiles(paths, overrides, options)).config;
}

/**
 * As much of the configuration as is right, for those who must act on a broken one, too: the sections that have no problem.
 * Throws ConfigError where there is no file.
 */
export async function loadConfigAnyway(paths: Paths, overrides: Overrides): Promise<Config> {
  try {
    return await loadConfig(paths, overrides);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { compileConfig } = await import('./compile.ts');
    return compileConfig(readMainSource(paths, overrides), { paths, overrides }).config;
  }
}

/** With the files it was made from, reeve.yaml first. */
export async function loadConfigAndFiles(
  paths: Paths,
  overrides: Overrides,
  { log = silentLog, version = ownVersion }: LoadOptions = {},
): Promise<{ config: Config; files: readonly string[] }> {
  const main = readMainSource(paths, overrides);
  const key = compiledKey({ paths, overrides, version: `${version} ${buildId}` });
  const known = readCompiled(paths.cacheDir, key, main);
  if (known !== undefined) return known;
  const { compileConfig } = await import('./compile.ts');
  const compiled = compileConfig(main, { paths, overrides });
  if (compiled.problems.length > 0) {
    const { describeProblem } = await import('./problems.ts');
    throw new ConfigError(compiled.problems.map(describeProblem).join('\n'));
  }
  const isKept = await writeCompiled(paths.cacheDir, key, compiled);
  if (!isKept) log.debug('cannot keep the compiled configuration', { directory: paths.cacheDir });
  return { config: compiled.config, files: compiled.sources.map(({ path }) => path) };
}

/** Undefined where there is no reeve.yaml but the environment names a seed system's file. Throws ConfigError. */
export function readMainSource(paths: Paths, overrides: Overrides): Source | undefined {
  const main = readSource(paths.configFile);
  const hasOther =
    overrides.LAUNCHPAD_AGENT_CONFIG !== undefined || overrides.AGENDA_NODE_CONFIG !== undefined;
  if (main === undefined && !hasOther) {
    throw new ConfigError(
      `cannot read ${paths.configFile}: there is no such file: write one with \`reeve init\``,
    );
  }
  return main;
}
