// From the files to a Config: parse, check the shape, put seed files under their sections, apply defaults, overrides
// and rules. Finds all problems, not only the first. Imported only when no compiled form is at hand.
import { dirname, resolve } from 'node:path';
import { ConfigError, describeError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import type { Config } from './config.ts';
import { type ConfigDocument, type KeyPath, parseYaml } from './document.ts';
import type { Overrides } from './environment.ts';
import type { Paths } from './paths.ts';
import { type Problem, readIssues, sortProblems, wantedOf } from './problems.ts';
import { configSchema, knownKeysAt } from './schema.ts';
import { type Findings, type Layer, mergeSection, type RawSection } from './section.ts';
import { readActions, readHooks } from './section-actions.ts';
import { readCluster } from './section-cluster.ts';
import { readCommands } from './section-commands.ts';
import { readJobs } from './section-jobs.ts';
import { placeUnknownKeys, readSeedLayer, type SeedSection } from './seeds.ts';
import { readSource, type Source } from './sources.ts';

export type CompiledConfig = {
  /** Only to be used when there is no problem. */
  config: Config;
  problems: readonly Problem[];
  /** The files it was made from, reeve.yaml first. */
  sources: readonly Source[];
  /** The seed system's file of each section that has one. */
  seedFiles: Readonly<Partial<Record<SeedSection, string>>>;
  /** The file that holds the token of the section `commands`, where there is one. */
  tokenFile?: string;
  /** Of the warnings, that others can read the file. */
  tokenWarning?: string;
};

type Work = {
  paths: Paths;
  overrides: Overrides;
  document: ConfigDocument;
  sections: Record<string, RawSection>;
  /** Sections whose shape is wrong: their rules are not looked at. */
  broken: ReadonlySet<string>;
  sources: Source[];
  seedFiles: Partial<Record<SeedSection, string>>;
  findings: Findings;
};

/** `main` is reeve.yaml, undefined where only the environment names configuration files. */
export function compileConfig(
  main: Source | undefined,
  around: { paths: Paths; overrides: Overrides },
): CompiledConfig {
  const findings: Findings = { problems: [], warnings: [] };
  const work = openWork(main, around, findings);
  const { config, tokenWarning } = readSections(work);
  return {
    config,
    problems: sortProblems(findings.problems),
    sources: work.sources,
    seedFiles: work.seedFiles,
    ...(config.commands === undefined ? {} : { tokenFile: findTokenFile(work) }),
    ...(tokenWarning === undefined ? {} : { tokenWarning }),
  };
}

function openWork(
  main: Source | undefined,
  around: { paths: Paths; overrides: Overrides },
  findings: Findings,
): Work {
  const file = around.paths.configFile;
  const parsed = parseYaml(file, main?.text ?? '');
  findings.problems.push(...parsed.problems);
  const document = parsed.document ?? { file, value: undefined, placeOf: () => undefined };
  const { broken, strays } = checkShape(document, findings);
  const isMapping = typeof document.value === 'object' && document.value !== null;
  const sections = isMapping ? withoutPaths(document.value as Work['sections'], strays) : {};
  if (parsed.problems.length === 0) nameSeedFiles(sections, around.overrides, findings);
  return { ...around, document, sections, broken, sources: main ? [main] : [], seedFiles: {}, findings };
}

/** Nothing else in their section goes by these: it can be looked at without them. */
const standAlone = new Set(['caddy', 'balancer', 'haproxy', 'intervals', 'docker']);

/** `strays`: wrong values that stand alone. */
function checkShape(
  document: ConfigDocument,
  findings: Findings,
): { broken: ReadonlySet<string>; strays: readonly KeyPath[] } {
  const value = document.value ?? {};
  const parsed = configSchema.safeParse(value, { error: wantedOf });
  if (parsed.success) return { broken: new Set(), strays: [] };
  const { issues } = parsed.error;
  const { problems, unknownKeys } = readIssues(issues, {
    document,
    value,
    base: [],
    knownKeys: (path) => knownKeysAt(configSchema, path),
  });
  findings.problems.push(...problems, ...placeUnknownKeys(unknownKeys, document));
  const mismatches = issues.filter((issue) => issue.code !== 'unrecognized_keys');
  const paths = mismatches.map(({ path }) =>
    path.map((step) => (typeof step === 'number' ? step : String(step))),
  );
  const isAlone = ([section, key]: KeyPath): boolean => section === 'cluster' && standAlone.has(String(key));
  return {
    broken: new Set(paths.filter((path) => !isAlone(path)).map(([section]) => String(section))),
    strays: paths.filter(isAlone),
  };
}

function withoutPaths(sections: Work['sections'], paths: readonly KeyPath[]): Work['sections'] {
  if (paths.length === 0) return { ...sections };
  const kept = structuredClone(sections) as Record<string, unknown>;
  for (const path of paths) {
    const holder = path
      .slice(0, -1)
      .reduce<unknown>((at, step) => (isRecord(at) ? at[step] : undefined), kept);
    const last = path.at(-1);
    if (isRecord(holder) && last !== undefined) delete holder[last];
  }
  return kept as Work['sections'];
}

/** The seed systems' variables name their files; agenda-node's yields to a file named here, launch-pad's does not. */
function nameSeedFiles(sections: Work['sections'], overrides: Overrides, findings: Findings): void {
  const agentJson = overrides.LAUNCHPAD_AGENT_CONFIG;
  if (agentJson !== undefined) {
    const { cluster } = sections;
    if (cluster === undefined || typeof cluster?.['file'] === 'string') {
      sections['cluster'] = { ...cluster, file: agentJson };
    } else {
      findings.warnings.push('LAUNCHPAD_AGENT_CONFIG is ignored, as section cluster names no file');
    }
  }
  const nodeYaml = overrides.AGENDA_NODE_CONFIG;
  if (nodeYaml !== undefined && sections['commands'] === undefined) {
    sections['commands'] = { file: nodeYaml };
  }
}

function readSections(work: Work): { config: Config; tokenWarning: string | undefined } {
  const { findings } = work;
  let tokenWarning: string | undefined;
  const config: Config = { file: work.document.file, hooks: {}, warnings: findings.warnings };
  const cluster = openSection(work, 'cluster');
  if (cluster) config.cluster = readCluster(cluster, work);
  const jobs = openSection(work, 'jobs');
  if (jobs) config.jobs = readJobs(jobs);
  const commands = openSection(work, 'commands');
  if (commands) {
    config.commands = readCommands(commands);
    tokenWarning = describeReaders(work);
    if (tokenWarning !== undefined) findings.warnings.push(tokenWarning);
  }
  const actions = openSection(work, 'actions');
  if (actions) config.actions = readActions(actions, work);
  const hooks = openSection(work, 'hooks');
  if (hooks) config.hooks = readHooks(hooks);
  if (Object.keys(work.sections).length === 0 && findings.problems.length === 0) {
    findings.warnings.push(`${work.document.file} has no section: there is nothing to do on this machine`);
  }
  return { config, tokenWarning };
}

/** The section's layers merged; undefined where it is missing or its shape is wrong. */
function openSection(work: Work, name: SeedSection | 'hooks') {
  const inline = work.sections[name];
  if (inline === undefined || work.broken.has(name)) return undefined;
  const { file, ...value } = inline;
  const layers: Layer[] = [{ document: work.document, base: [name], value }];
  if (typeof file === 'string' && name !== 'hooks') {
    const layer = openSeedFile(work, name, file);
    if (layer === undefined) return undefined;
    layers.push(layer);
  }
  return mergeSection<Record<string, never>>(name, layers, work.findings);
}

function openSeedFile(work: Work, name: SeedSection, file: string): Layer | undefined {
  const path = resolve(dirname(work.document.file), file);
  const named = work.document.placeOf([name, 'file'], 'value');
  const place = named === undefined ? {} : { file: work.document.file, ...named };
  try {
    const source = readSource(path);
    if (source === undefined) {
      work.findings.problems.push({ ...place, message: `cannot read ${path}: there is no such file` });
      return undefined;
    }
    work.sources.push(source);
    work.seedFiles[name] = path;
    return readSeedLayer(name, source, work.findings);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    work.findings.problems.push({ ...place, message: describeError(error) });
    return undefined;
  }
}

/** What stands in reeve.yaml itself wins over the seed's own file. */
function findTokenFile({ sections, seedFiles, document }: Work): string {
  const isInline = sections['commands']?.['token'] !== undefined;
  return (isInline ? undefined : seedFiles.commands) ?? document.file;
}

/** Whoever reads the token runs commands here. */
function describeReaders(work: Work): string | undefined {
  const holder = findTokenFile(work);
  const source = work.sources.find(({ path }) => path === holder);
  if (source === undefined || (source.mode & 0o077) === 0) return undefined;
  return `${holder} holds a token and others can read it: chmod 600 ${holder}`;
}
