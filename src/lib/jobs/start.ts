// Starting `job run` for a job: in its own unit where systemd runs us as one, else as a child of ours. A job's lock makes
// starting one twice harmless.
import { type ChildProcess, spawn } from 'node:child_process';
import { readInvocation } from '../config/environment.ts';
import type { BaseContext } from '../context.ts';
import { StepError, systemErrorCode } from '../errors.ts';
import { isSystemdRunning, runSystemctl } from '../exec/systemd.ts';

type StartContext = Pick<BaseContext, 'paths' | 'signal'>;

/** True where jobs get units of their own, which outlive whoever starts them. */
export function hasUnits(): boolean {
  return readInvocation().unit && isSystemdRunning();
}

/** Resolves once systemd has it in its queue. Starting what runs or is about to is success. */
export async function startJobUnit(ctx: Pick<BaseContext, 'signal'>, key: string): Promise<void> {
  await runSystemctl(['start', '--no-block', `reeve-job@${key}.service`], ctx);
}

/** `reeve job run KEY` under the Node.js and the bundle that run us. What it tells goes where ours goes. */
export function spawnJob({ paths }: StartContext, key: string): ChildProcess {
  const [node = process.execPath, entry] = process.argv;
  if (entry === undefined) throw new StepError(`cannot start job ${key}: it is not known what runs us`);
  return spawn(node, [entry, 'job', 'run', '--config', paths.configFile, '--', key], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** For whoever only starts and does not wait: the child outlives us. Throws StepError where it cannot be started. */
export async function startJob(ctx: StartContext, key: string): Promise<void> {
  if (hasUnits()) return await startJobUnit(ctx, key);
  const child = spawnJob(ctx, key);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', () => resolve());
    child.once('error', (error) => {
      const cause = systemErrorCode(error) ?? error.message;
      reject(new StepError(`cannot start job ${key}: ${cause}`, { cause: error }));
    });
  });
  child.unref();
}
