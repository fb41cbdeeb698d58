// Bundles src/commands into dist/: main.js and one chunk for each lazily imported module, so that a command parses
// only what it uses. Writes dist/meta.json for the budget test. `node scripts/build.mjs [DIRECTORY]` builds elsewhere.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const out = resolve(process.argv[2] ?? new URL('../dist', import.meta.url).pathname);

rmSync(out, { recursive: true, force: true });
const result = await build({
  entryPoints: [new URL('../src/commands/main.ts', import.meta.url).pathname],
  outdir: out,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  legalComments: 'none',
  chunkNames: '[name]-[hash]',
  metafile: true,
  define: { REEVE_VERSION: JSON.stringify(version) },
  // CommonJS dependencies want require() for node: builtins and __filename, which ESM does not have.
  banner: {
    js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url),__filename=import.meta.filename;",
  },
  logLevel: 'warning',
});
writeFileSync(join(out, 'meta.json'), JSON.stringify(result.metafile));
