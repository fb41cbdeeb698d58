// A temporary directory with everything that a configuration is read from and written to.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type CompiledConfig, compileConfig } from '../../src/lib/config/compile.ts';
import type { Config } from '../../src/lib/config/config.ts';
import type { Overrides } from '../../src/lib/config/environment.ts';
import { loadConfig, readMainSource } from '../../src/lib/config/load.ts';
import { type Paths, resolvePaths } from '../../src/lib/config/paths.ts';
import { describeProblem } from '../../src/lib/config/problems.ts';
import { onTestFinished } from './after-test.ts';

export type ConfigHome = {
  root: string;
  paths: Paths;
  /** Writes a file below the root, mode 0600; answers its path. */
  write(name: string, text: string | Uint8Array, mode?: number): Promise<string>;
  load(overrides?: Overrides): Promise<Config>;
  compile(overrides?: Overrides): Promise<CompiledConfig>;
  /** One line a problem, with the root's path taken out. */
  problems(overrides?: Overrides): Promise<string[]>;
  warnings(overrides?: Overrides): Promise<string[]>;
};

/** With `yaml` as its reeve.yaml; `ROOT` in it stands for the root. */
export async function createConfigHome(yaml?: string): Promise<ConfigHome> {
  const root = await mkdtemp(join(tmpdir(), 'reeve-config-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const paths = resolvePaths(
    { config: join(root, 'reeve.yaml') },
    { REEVE_STATE: join(root, 'state'), REEVE_RUN: join(root, 'run'), REEVE_CACHE: join(root, 'cache') },
  );
  const compile = async (overrides: Overrides = {}): Promise<CompiledConfig> =>
    compileConfig(await readMainSource(paths, overrides), { paths, overrides });
  const withoutRoot = (text: string): string => text.replaceAll(`${root}/`, '');
  const home: ConfigHome = {
    root,
    paths,
    write: async (name, text, mode = 0o600) => {
      const path = join(root, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text, { mode });
      return path;
    },
    load: (overrides = {}) => loadConfig(paths, overrides),
    compile,
    problems: async (overrides) => (await compile(overrides)).problems.map(describeProblem).map(withoutRoot),
    warnings: async (overrides) => (await compile(overrides)).config.warnings.map(withoutRoot),
  };
  if (yaml !== undefined) await home.write('reeve.yaml', yaml.replaceAll('ROOT', root));
  return home;
}
