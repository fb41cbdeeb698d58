// Which modules go into one chunk: the kernel, that every command loads, and a few sets that are used together. esbuild makes
// a chunk of all modules that the same entry points share: with a chunk a command that is dozens of files of a few lines, and
// each one opened costs half a millisecond at every start. Entry points that all import the kernel share it as one.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Needed by so many entry points; a module drags in all that it imports, so that is weighed too. */
const leastUses = 5;
const mostBytes = 160_000;
/**
 * An edge has no engine and nothing to reconcile, other nodes no HAProxy, most no cloud, no backups, no jobs, no commands and no
 * actions: what makes use of one stays out.
 */
const never =
  /^src\/lib\/(actions\/|deploy-runner\/(?!(names|times)\.ts)|docker\/|reconcile\/|jobs\/|bootstrap\/|control-plane\/(?!control-plane\.ts)|ploy\/completion\.ts|commands\/|proxy\/|haproxy\/|http\/(?!retry\.ts)|backup\/(names|place)\.ts|aws\/(?!settings\.ts))/;

/** Whoever uses one of them nearly always uses the others as well: all that these import of these folders. */
const sets = {
  docker: { of: ['src/lib/docker/client.ts'], below: /^src\/lib\/docker\// },
  server: {
    of: ['src/lib/control-plane/client.ts', 'src/lib/bootstrap/require.ts'],
    below: /^src\/lib\/(bootstrap|control-plane|http|ploy)\//,
  },
  jobs: {
    of: ['cancel-reason', 'deliver', 'slots', 'start'].map((name) => `src/lib/jobs/${name}.ts`),
    below: /^src\/lib\/jobs\//,
  },
  proxy: {
    of: ['registry', 'tunnels'].map((name) => `src/lib/proxy/${name}.ts`),
    below: /^src\/lib\/(proxy\/|haproxy\/(parse-)?workers\.ts)/,
  },
};

/** What is shared and by whom, as paths from the root, from the metafile of a build in which nothing is. The kernel is the first. */
export function planShared(metafile, entry) {
  // What a set imports beside its own modules comes with it to all its users, and may so be needed by enough for the kernel.
  const known = planSets(metafile, planKernel(metafile, entry, []));
  const kernel = planKernel(metafile, entry, known);
  return [kernel, ...planSets(metafile, kernel)];
}

function planSets({ inputs }, kernel) {
  return Object.entries(sets).map(([name, { of, below }]) => {
    const needed = of.flatMap((path) => [...importedBy(inputs, path)]);
    const modules = [...new Set(needed)].filter(
      (path) => below.test(path) && !kernel.modules.includes(path) && !kernel.entries.includes(path),
    );
    const entries = kernel.entries.filter((path) => {
      const imported = importedBy(inputs, path);
      return modules.some((module) => imported.has(module));
    });
    return { name, modules: modules.sort(), entries };
  });
}

function planKernel({ inputs, outputs }, entry, known) {
  const entries = Object.values(outputs).flatMap(({ entryPoint }) => entryPoint ?? []);
  const main = importedBy(inputs, entry);
  const uses = new Map();
  for (const one of entries) {
    const loaded = importedBy(inputs, one);
    const used = known.filter((set) => set.entries.includes(one));
    for (const path of used.flatMap(({ modules }) => modules)) importedBy(inputs, path, loaded);
    for (const path of loaded) uses.set(path, (uses.get(path) ?? 0) + 1);
  }
  const isLight = (path) => {
    const dragged = [...importedBy(inputs, path)];
    const bytes = dragged.reduce((sum, imported) => sum + inputs[imported].bytes, 0);
    return bytes <= mostBytes && !dragged.some((imported) => never.test(imported));
  };
  const isOften = (path) => uses.get(path) >= leastUses;
  const modules = [...uses.keys()].filter(
    (path) =>
      path.startsWith('src/') &&
      !entries.includes(path) &&
      (main.has(path) || (isOften(path) && isLight(path))),
  );
  // A CommonJS package that imported the kernel would have all of it wrapped, and then nothing in it could be left out.
  return {
    name: 'kernel',
    modules: modules.sort(),
    entries: [...new Set(entries)].filter((path) => path.startsWith('src/')),
  };
}

/** An esbuild plugin. */
export function shareChunks(shared) {
  return {
    name: 'shared',
    setup(build) {
      const root = build.initialOptions.absWorkingDir;
      build.onResolve({ filter: /^reeve:/ }, ({ path }) => ({
        path: path.slice('reeve:'.length),
        namespace: 'shared',
      }));
      build.onLoad({ filter: /./, namespace: 'shared' }, ({ path }) => ({
        contents: shared
          .find(({ name }) => name === path)
          .modules.map((module) => `import './${module}';`)
          .join('\n'),
        resolveDir: root,
      }));
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const users = shared.filter(({ entries }) => entries.includes(relative(root, path)));
        if (users.length === 0) return undefined;
        const imports = users.map(({ name }) => `import 'reeve:${name}';`).join('');
        return { contents: `${imports}${readFileSync(path, 'utf8')}`, loader: 'ts' };
      });
    },
  };
}

function importedBy(inputs, path, seen = new Set()) {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const { path: imported, kind, external } of inputs[path]?.imports ?? []) {
    if (kind !== 'dynamic-import' && external !== true) importedBy(inputs, imported, seen);
  }
  return seen;
}
