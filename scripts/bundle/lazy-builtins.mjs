// Node's own modules, reached without ESM's facade and as late as possible. Importing `node:http` as an ES module calls
// every getter it exports, undici's among them (20 ms); `node:crypto` and `node:child_process` cost 5 and 3 ms, also
// where the command at hand never calls them.
import { isBuiltin } from 'node:module';
import { relative } from 'node:path';

/** Loaded at the first call of one of their functions. */
const lateModules = new Set([
  'child_process',
  'crypto',
  'dns',
  'fs/promises',
  'http',
  'https',
  'net',
  'readline/promises',
  'tls',
  'zlib',
]);

const namespaces = { 'require-call': 'required', 'dynamic-import': 'awaited' };

/** An esbuild plugin. */
export const lazyBuiltins = {
  name: 'lazy-builtins',
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, ({ path, kind, namespace, importer }) => {
      if (namespace !== 'file' || !isBuiltin(path)) return undefined;
      const name = path.replace(/^node:/, '');
      // One for each importer: shared, it would be a chunk, and hold the values that any of them names.
      return {
        path: name,
        suffix: `?${relative(build.initialOptions.absWorkingDir, importer)}`,
        namespace: namespaces[kind] ?? 'imported',
      };
    });
    build.onLoad({ filter: /./, namespace: 'imported' }, async ({ path }) => ({
      contents: renderImported(path, await import(`node:${path}`)),
    }));
    build.onLoad({ filter: /./, namespace: 'awaited' }, async ({ path }) => ({
      contents: renderImported(path, withoutGetters(await import(`node:${path}`))),
    }));
    build.onLoad({ filter: /./, namespace: 'required' }, ({ path }) => ({ contents: renderRequired(path) }));
  },
};

/** Functions of late modules forward their calls; classes and values are read at once where an importer names them. */
function renderImported(path, { default: _, ...exported }) {
  const own = `process.getBuiltinModule('node:${path}')`;
  const isLate = (name) =>
    lateModules.has(path) && /^[a-z]/.test(name) && typeof exported[name] === 'function';
  const lines = Object.keys(exported).map((name) =>
    isLate(name)
      ? `export const ${name} = (...args) => ${own}.${name}(...args);`
      : `export const ${name} = /* @__PURE__ */ (() => ${own}.${name})();`,
  );
  return [...lines, `export default ${lateModules.has(path) ? renderProxy(own) : own};`].join('\n');
}

/** Nothing can be left out of what is imported at run time, and `node:http` has getters that load undici. */
function withoutGetters({ default: own, ...exported }) {
  const isPlain = (name) => Object.getOwnPropertyDescriptor(own, name)?.get === undefined;
  return Object.fromEntries(Object.entries(exported).filter(([name]) => isPlain(name)));
}

function renderRequired(path) {
  // write-file-atomic asks on which thread it is; reeve has one.
  if (path === 'worker_threads') return 'module.exports = { isMainThread: true, threadId: 0 };';
  const own = `process.getBuiltinModule('node:${path}')`;
  return `module.exports = ${lateModules.has(path) ? renderProxy(own) : own};`;
}

function renderProxy(own) {
  return `/* @__PURE__ */ new Proxy({}, { get: (_, name) => ${own}[name] })`;
}
