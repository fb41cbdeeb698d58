// Starting reeve itself for work that outlives whoever asks for it: in a unit of its own where systemd runs us as one, else as a
// child. The lock of the work makes starting it twice harmless.
import { type ChildProcess, spawn } from 'node:child_process';
import { readInvocation } from '../config/environment.ts';
import type { BaseContext } from '../context.ts';
import { StepError, systemErrorCode } from '../errors.ts';
import { isSystemdRunning, runSystemctl } from './systemd.ts';

type OwnContext = Pick<BaseContext, 'paths' | 'signal'>;

export type OwnWork = {
  /** For messages: `job 7`. */
  what: string;
  unit: string;
  /** `job run`. */
  words: readonly string[];
  /** Its argument: an id, which is never taken for a flag. */
  key: string;
};

/** True where work gets units of its own, which outlive whoever starts them. */
export function hasUnits(): boolean {
  return readInvocation().unit && isSystemdRunning();
}

/** Resolves once systemd has it in its queue. Starting what runs or is about to is success. */
export async function startUnit(ctx: Pick<BaseContext, 'signal'>, unit: string): Promise<void> {
  await runSystemctl(['start', '--no-block', unit], ctx);
}

/** Under the Node.js and the bundle that run us. What it tells goes where ours goes. */
export function spawnOwn({ paths }: OwnContext, { what, words, key }: OwnWork): ChildProcess {
  const [node = process.execPath, entry] = process.argv;
  if (entry === undefined) throw new StepError(`cannot start ${what}: it is not known what runs us`);
  return spawn(node, [entry, ...words, '--config', paths.configFile, '--', key], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** For whoever only starts and does not wait: the child outlives us. Throws StepError where it cannot be started. */
export async function startOwn(ctx: OwnContext, work: OwnWork): Promise<void> {
  if (hasUnits()) return await startUnit(ctx, work.unit);
  const child = spawnOwn(ctx, work);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', () => resolve());
    child.once('error', (error) => {
      const cause = systemErrorCode(error) ?? error.message;
      reject(new StepError(`cannot start ${work.what}: ${cause}`, { cause: error }));
    });
  });
  child.unref();
}
