// What a process of a node that runs commands works with, for calling its functions here.
import { loadConfig } from '../../src/lib/config/load.ts';
import { resolvePaths } from '../../src/lib/config/paths.ts';
import type { Context } from '../../src/lib/context.ts';
import { createLog } from '../../src/lib/report/log.ts';
import { systemClock } from '../../src/lib/time.ts';
import type { CommandsNode } from './commands-node.ts';

export async function contextOf(node: CommandsNode): Promise<Context> {
  const paths = resolvePaths({}, node.env);
  const log = createLog({
    ...{ invocation: { journal: false, unit: false, colour: false }, level: 'error', runId: 'run-1' },
    write: () => {},
  });
  const base = {
    ...{ runId: 'run-1', command: 'command run', paths, overrides: {}, clock: systemClock, log },
    ...{ signal: new AbortController().signal, interactive: false },
  };
  return { ...base, config: await loadConfig(paths, {}) };
}
