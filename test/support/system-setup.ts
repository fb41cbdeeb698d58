// Before the system tests: the root file system that all machines share, or the reason why none can be booted here.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';
import { buildHostRoot, findHostProblem, sweepHosts } from './host.ts';
import { startProcess } from './programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why no machine can be booted; empty where one can. */
    hostProblem: string;
    /** The package under test, as scripts/package makes it. */
    packageFile: string;
  }
}

const directory = mkdtempSync(join(tmpdir(), `reeve-package-${process.pid}-`));

export async function setup(project: TestProject): Promise<void> {
  const problem = findHostProblem();
  project.provide('hostProblem', problem ?? '');
  if (problem !== undefined) {
    project.provide('packageFile', '');
    console.warn(`system tests are skipped, since no machine can be booted here: ${problem}`);
    return;
  }
  sweepHosts();
  sweepPackages();
  buildHostRoot();
  // Of two projects the second one takes the first one's.
  process.env['REEVE_TEST_PACKAGE'] ??= await buildPackage();
  project.provide('packageFile', process.env['REEVE_TEST_PACKAGE']);
}

export function teardown(): void {
  rmSync(directory, { recursive: true, force: true });
}

/** Of test runs that were killed. */
function sweepPackages(): void {
  for (const entry of readdirSync(tmpdir())) {
    const pid = /^reeve-package-(\d+)-/.exec(entry)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) {
      rmSync(join(tmpdir(), entry), { recursive: true, force: true });
    }
  }
}

async function buildPackage(): Promise<string> {
  const script = resolve(import.meta.dirname, '../../scripts/package');
  const built = await startProcess(script, [directory]).ended;
  if (built.status !== 0) throw new Error(`the package ended with ${built.status}:\n${built.stderr}`);
  return built.stdout.trim();
}
