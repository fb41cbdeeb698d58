// What a process of a node that performs actions works with, for calling its functions here.

import { resolvePaths } from '../../src/lib/config/paths.ts';
import type { Context } from '../../src/lib/context.ts';
import { silentLog } from '../../src/lib/report/log.ts';

export type ActionsContext = Omit<Context, 'config'>;

export function actionsContext(root: string, now: () => Date = () => new Date()): ActionsContext {
  const env = { REEVE_STATE: `${root}/state`, REEVE_RUN: `${root}/run`, REEVE_CACHE: `${root}/cache` };
  return {
    ...{ runId: 'run-1', command: 'deploy-action', paths: resolvePaths({}, env), overrides: {} },
    ...{ clock: { now, sleep: () => Promise.resolve() }, log: silentLog },
    ...{ signal: new AbortController().signal, interactive: false },
  };
}
