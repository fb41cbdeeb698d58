// Bundles src/commands into dist/: main.js, the kernel that every command loads, a few sets of what is used together, and one
// chunk for each lazily imported module, so that a command parses only what it uses. Writes dist/meta.json for the budget test.
// `node scripts/build.mjs [DIRECTORY]` builds elsewhere.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { lazyBuiltins } from './bundle/lazy-builtins.mjs';
import { planShared, shareChunks } from './bundle/shared.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const entry = 'src/commands/main.ts';
const out = resolve(process.argv[2] ?? join(root, 'dist'));
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));

const options = {
  absWorkingDir: root,
  entryPoints: [entry],
  outdir: out,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Of the AWS clients' two builds the one of which what is not used can be left out: a third of the size.
  mainFields: ['module', 'main'],
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  legalComments: 'none',
  chunkNames: '[name]-[hash]',
  metafile: true,
  define: { REEVE_VERSION: JSON.stringify(version) },
  // CommonJS dependencies want require() for Node's own modules and __filename, which ESM does not have.
  banner: { js: 'const require=process.getBuiltinModule,__filename=import.meta.filename;' },
  plugins: [lazyBuiltins],
  logLevel: 'warning',
  write: false,
};

const separate = await build({ ...options, logLevel: 'silent' });
const shared = shareChunks(planShared(separate.metafile, entry));
const { metafile, outputFiles } = await build({ ...options, plugins: [shared, lazyBuiltins] });
// Written last and at once: a build that fails leaves the earlier one as it was.
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const { path, contents } of outputFiles) writeFileSync(path, contents);
writeFileSync(join(out, 'meta.json'), JSON.stringify(metafile));
