// Which modules go into one chunk, the kernel, that every command loads. esbuild makes a chunk of each set of modules
// that the same entry points share: with a chunk a command that is dozens of files of a few lines, and each one opened
// costs half a millisecond at every start. Entry points that all import the kernel share it as one set.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Needed by so many entry points; a module drags in all that it imports, so that is weighed too. */
const leastUses = 5;
const mostBytes = 160_000;
/** An edge has no engine and nothing to reconcile, most nodes no cloud, no backups and no jobs: what makes use of one stays out. */
const never =
  /^src\/lib\/(docker\/|reconcile\/|jobs\/|http\/|backup\/(names|place)\.ts|aws\/(?!settings\.ts))/;

/** The kernel's modules and our own entry points, as paths from the root, from the metafile of a build without a kernel. */
export function planKernel({ inputs, outputs }, entry) {
  const entries = Object.values(outputs).flatMap(({ entryPoint }) => entryPoint ?? []);
  const main = importedBy(inputs, entry);
  const uses = new Map();
  for (const one of entries) {
    for (const path of importedBy(inputs, one)) uses.set(path, (uses.get(path) ?? 0) + 1);
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
  return { modules: modules.sort(), entries: entries.filter((path) => path.startsWith('src/')) };
}

/** An esbuild plugin. */
export function shareKernel({ modules, entries }) {
  return {
    name: 'kernel',
    setup(build) {
      const root = build.initialOptions.absWorkingDir;
      build.onResolve({ filter: /^reeve:kernel$/ }, () => ({ path: 'kernel', namespace: 'kernel' }));
      build.onLoad({ filter: /./, namespace: 'kernel' }, () => ({
        contents: modules.map((path) => `import './${path}';`).join('\n'),
        resolveDir: root,
      }));
      build.onLoad({ filter: /\.ts$/ }, ({ path }) =>
        entries.includes(relative(root, path))
          ? { contents: `import 'reeve:kernel';${readFileSync(path, 'utf8')}`, loader: 'ts' }
          : undefined,
      );
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
