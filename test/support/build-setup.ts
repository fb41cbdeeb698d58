// Before the integration tests: a build of our own, laid out as an installation, so that nobody's rebuilding disturbs it.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startProcess } from './programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The `bin/reeve` of the build under test. */
    reeveBin: string;
  }
}

const checkout = resolve(import.meta.dirname, '../..');
const root = mkdtempSync(join(tmpdir(), 'reeve-build-'));

export async function setup(project: TestProject): Promise<void> {
  await build(root);
  // Else each test, whose cache is its own, would compile everything once more.
  process.env['NODE_COMPILE_CACHE'] ??= join(root, 'compiled');
  project.provide('reeveBin', join(root, 'bin/reeve'));
}

export function teardown(): void {
  rmSync(root, { recursive: true, force: true });
}

async function build(directory: string): Promise<void> {
  const script = join(checkout, 'scripts/build.mjs');
  const built = await startProcess(process.execPath, [script, join(directory, 'dist')]).ended;
  if (built.status !== 0) throw new Error(`the build ended with ${built.status}:\n${built.stderr}`);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}\n');
  mkdirSync(join(directory, 'bin'));
  copyFileSync(join(checkout, 'bin/reeve'), join(directory, 'bin/reeve'));
  mkdirSync(join(directory, 'scripts'));
  copyFileSync(join(checkout, 'scripts/deploy-service.sh'), join(directory, 'scripts/deploy-service.sh'));
  symlinkSync(join(checkout, 'node_modules'), join(directory, 'node_modules'));
}
