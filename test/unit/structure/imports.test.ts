// Who may touch what, read off the sources and off what is built of them: the rules that no type can hold.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeTempDir } from '../../support/temp.ts';

const root = resolve(import.meta.dirname, '../../../src');
const sources = globSync('**/*.ts', { cwd: root });
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Files that a file loads, at once or later; types vanish in the build and do not count. */
function importsOf(file: string): string[] {
  return namesIn(file, textOf(file).replaceAll(/import type [^;]*;/g, ''));
}

function namesIn(file: string, text: string): string[] {
  const found = text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g);
  return [...found].map(([, path]) => relative(root, resolve(join(root, dirname(file)), path as string)));
}

function reachableFrom(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const next of importsOf(file)) reachableFrom(next, seen);
  return seen;
}

const roomsOf = (files: Iterable<string>): Set<string> => new Set([...files].map((file) => dirname(file)));

/** The table of ARCHITECTURE.md: each folder and file of `src/lib` with its layer, the lowest being 0. */
function readLayers(): Map<string, number> {
  const text = readFileSync(join(root, '../ARCHITECTURE.md'), 'utf8');
  const rows = (/\n\| layer [^\n]*\n[^\n]*\n((?:\|[^\n]*\n)+)/.exec(text)?.[1] ?? '').trim().split('\n');
  const layers = rows.reverse().flatMap((row, layer) => {
    const names = [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);
    return names.map((name) => [name, layer] as const);
  });
  return new Map(layers);
}

const roomOf = (file: string): string =>
  (file.startsWith('lib/') ? file.split('/')[1] : 'src/commands') ?? '';

describe('the layers', () => {
  const layers = readLayers();
  const layerOf = (file: string): number => layers.get(roomOf(file)) ?? Number.NaN;
  const pairs = sources.flatMap((file) => namesIn(file, textOf(file)).map((other) => [file, other] as const));

  it('name each folder and file of src/lib once, and none that is not there', () => {
    expect([...layers.keys()].sort()).toEqual([...new Set(sources.map(roomOf))].sort());
    expect(Math.max(...layers.values())).toBe(4);
  });

  it('import only downward, types as well', () => {
    expect(pairs.length).toBeGreaterThan(sources.length);
    const upward = pairs.filter(([file, other]) => !(layerOf(other) <= layerOf(file)));
    expect(upward.map((pair) => pair.join(' -> '))).toEqual([]);
  });

  it('let no concern do what another one does', () => {
    const concern = layers.get('reconcile');
    const acts = (other: string): boolean => /\/(apply|perform|tick)\.ts$/.test(other);
    const foreign = pairs.filter(
      ([file, other]) => layerOf(file) === concern && roomOf(file) !== roomOf(other) && acts(other),
    );
    expect(foreign.map((pair) => pair.join(' -> '))).toEqual([]);
  });

  it('let whoever only looks at actions look at their mechanism', () => {
    const concerns = new Set(['action', 'deploy-action', 'rsync-pull']);
    const lookers = pairs.filter(([file]) => ['doctor', 'status'].includes(roomOf(file)));
    const reached = lookers.filter(([, other]) => concerns.has(roomOf(other)));
    expect(reached.map((pair) => pair.join(' -> '))).toEqual([]);
    expect(lookers.filter(([, other]) => roomOf(other) === 'actions').length).toBeGreaterThan(3);
  });
});

describe('the sources', () => {
  it('speak to the engine’s socket in one place only (L1)', () => {
    const speakers = sources.filter((file) => /\bsocketPath\b/.test(textOf(file)));
    expect(roomsOf(speakers)).toEqual(new Set(['lib/docker']));
  });

  it('start what others ask for by one runner, and nothing else in a group of its own (A4)', () => {
    const starting =
      /^import \{[^}]*\b(?:spawn|execFile|exec|fork)\b[^}]*\} from 'node:child_process'|import\('execa'\)/m;
    const starters = sources.filter((file) => starting.test(textOf(file)));
    expect(roomsOf(starters)).toEqual(new Set(['lib/exec', 'lib/lock', 'lib/runner']));
    expect(sources.filter((file) => /\bdetached: true\b/.test(textOf(file)))).toEqual([
      'lib/runner/start.ts',
    ]);
    expect(reachableFrom('commands/command-run.ts')).toContain('lib/runner/run.ts');
    const runners = sources.filter((file) => /\bkill\(-/.test(textOf(file)));
    expect(runners).toEqual(['lib/host/processes.ts']);
  });

  it('have no way from an app node’s tick to Caddy (L9, L27)', () => {
    const reached = [...reachableFrom('commands/reconcile.ts')];
    expect(reached).toContain('lib/docker/transport.ts');
    expect(reached.filter((file) => /^lib\/(edge|caddy|haproxy|proxy)\//.test(file))).toEqual([]);
    const callers = reached.filter((file) => /config\.caddy|cluster\.caddy\.admin/.test(textOf(file)));
    expect(callers.filter((file) => !file.startsWith('lib/config/'))).toEqual([]);
  });

  it('have no way from an edge’s tick to an engine, to secrets or to registries (L10)', () => {
    const reached = [...reachableFrom('commands/edge.ts')];
    expect(reached).toEqual(expect.arrayContaining(['lib/caddy/admin.ts', 'lib/haproxy/runtime.ts']));
    expect(reached.filter((file) => /^lib\/(docker|secrets|reconcile)\//.test(file))).toEqual([]);
    const callers = reached.filter((file) =>
      /client-(ecr|ssm)|\/containers\/json|docker\.sock/.test(textOf(file)),
    );
    expect(callers.filter((file) => !file.startsWith('lib/config/'))).toEqual([]);
  });

  it('plan without files, processes, network or clock (L20, L181)', () => {
    const planners = sources.filter(
      (file) => /(^|\/)plan(-[a-z]+)?\.ts$/.test(file) && file.startsWith('lib/'),
    );
    expect(planners.length).toBeGreaterThan(5);
    const impure = planners.filter((file) =>
      /from 'node:(?!crypto)|from 'execa'|Date\.now\(|new Date\(\)|Math\.random|process\./.test(textOf(file)),
    );
    expect(impure).toEqual([]);
  });
});

describe('the bundle', () => {
  type Chunk = {
    entryPoint?: string;
    inputs: Record<string, { bytesInOutput: number }>;
    imports: { path: string; external?: boolean }[];
  };
  let out = '';
  let chunks: Record<string, Chunk> = {};
  const clean: (() => void | Promise<void>)[] = [];
  beforeAll(async () => {
    out = makeTempDir((hook) => void clean.push(hook));
    execFileSync(process.execPath, [join(root, '../scripts/build.mjs'), out]);
    const meta = JSON.parse(readFileSync(join(out, 'meta.json'), 'utf8')) as {
      outputs: Record<string, Chunk>;
    };
    chunks = Object.fromEntries(
      Object.entries(meta.outputs).map(([path, chunk]) => [resolve(root, '..', path), chunk]),
    );
    return async () => {
      for (const hook of clean) await hook();
    };
  }, 60_000);

  /** Files of a command with all that they load, at once or later: but no other command, which what they share would load. */
  function loadedBy(command: string): string[] {
    const [start] = Object.entries(chunks).find(([, { entryPoint }]) => entryPoint === command) ?? [];
    const seen = new Set<string>();
    const visit = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      const imports = chunks[path]?.imports.filter(({ external }) => external !== true) ?? [];
      const files = imports.map((one) => resolve(root, '..', one.path));
      files.filter((file) => !/^src\/commands\/(?!main)/.test(chunks[file]?.entryPoint ?? '')).forEach(visit);
    };
    if (start !== undefined) visit(start);
    return [...seen];
  }

  /** Sources with at least a byte in these files. */
  function sourcesIn(files: readonly string[]): string[] {
    return files.flatMap((file) =>
      Object.entries(chunks[file]?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
        bytesInOutput > 0 ? [path] : [],
      ),
    );
  }

  const engine = /^src\/lib\/(docker|secrets|reconcile)\/|client-(ecr|ssm)/;

  it('gives an edge nothing that drives an engine, reads secrets or logs in to registries (L10)', () => {
    const files = loadedBy('src/commands/edge.ts');
    const inside = sourcesIn(files);
    expect(inside).toEqual(expect.arrayContaining(['src/lib/caddy/admin.ts', 'src/lib/edge/tick.ts']));
    expect(inside.filter((path) => engine.test(path))).toEqual([]);
    const texts = files.map((file) => readFileSync(file, 'utf8'));
    expect(texts.filter((text) => text.includes('/containers/json'))).toEqual([]);
    // As it is found where it is.
    const app = loadedBy('src/commands/reconcile.ts');
    expect(app.some((file) => readFileSync(file, 'utf8').includes('/containers/json'))).toBe(true);
  });

  it('gives an app node nothing of an edge (L9, L27)', () => {
    const inside = sourcesIn(loadedBy('src/commands/reconcile.ts'));
    expect(inside).toContain('src/lib/docker/containers.ts');
    expect(inside.filter((path) => /^src\/lib\/(edge|caddy|haproxy)\//.test(path))).toEqual([]);
  });
});
