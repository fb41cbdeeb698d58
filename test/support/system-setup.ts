// Before the system tests: the root file system that all machines share, or the reason why none can be booted here.
import type { TestProject } from 'vitest/node';
import { buildHostRoot, findHostProblem, sweepHosts } from './host.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why no machine can be booted; empty where one can. */
    hostProblem: string;
  }
}

export function setup(project: TestProject): void {
  const problem = findHostProblem();
  project.provide('hostProblem', problem ?? '');
  if (problem !== undefined) {
    console.warn(`system tests are skipped, since no machine can be booted here: ${problem}`);
    return;
  }
  sweepHosts();
  buildHostRoot();
}
