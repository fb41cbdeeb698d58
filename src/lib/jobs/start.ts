// Starting `job run` for a job.
import type { ChildProcess } from 'node:child_process';
import type { BaseContext } from '../context.ts';
import { type OwnWork, spawnOwn, startOwn, startUnit } from '../exec/own.ts';

type StartContext = Pick<BaseContext, 'paths' | 'signal'>;

function describeWork(key: string): OwnWork {
  return { what: `job ${key}`, unit: `reeve-job@${key}.service`, words: ['job', 'run'], key };
}

export async function startJobUnit(ctx: Pick<BaseContext, 'signal'>, key: string): Promise<void> {
  await startUnit(ctx, describeWork(key).unit);
}

export function spawnJob(ctx: StartContext, key: string): ChildProcess {
  return spawnOwn(ctx, describeWork(key));
}

export async function startJob(ctx: StartContext, key: string): Promise<void> {
  await startOwn(ctx, describeWork(key));
}
