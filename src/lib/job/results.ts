// What the run's workspace has to do with a job: made ready before, and looked through after.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../context.ts';
import type { BindMount } from '../docker/types.ts';
import type { ContainerEnd, JobClaim } from '../jobs/records.ts';
import { containerDirs } from '../ploy/names.ts';
import type { CompletionStats } from '../ploy/wire.ts';
import type { JobSession } from './session.ts';

export type JobPaths = {
  workspace: string;
  in: string;
  out: string;
  share: string;
  stdout: string;
  stderr: string;
  inspect: string;
};

export type PreparedWorkspace = { binds: readonly BindMount[]; paths: JobPaths };

export type Results = { error?: string; repoShaOut?: string };

export function findPaths({ overrides, paths }: Context, { runId, jobId }: JobClaim): JobPaths {
  const root = join(overrides.PLOYD_CACHE_HOME ?? join(paths.cacheDir, 'jobs'), 'runs', runId);
  const job = join(root, 'artifacts', jobId);
  return {
    workspace: join(root, 'workspace'),
    in: join(job, 'in'),
    out: join(job, 'out'),
    share: join(root, 'artifacts/shared'),
    stdout: join(job, 'stdout.log'),
    stderr: join(job, 'stderr.log'),
    inspect: join(job, 'container.inspect.json'),
  };
}

export async function makeReady(session: JobSession): Promise<PreparedWorkspace> {
  const paths = findPaths(session.ctx, session.claim);
  for (const path of [paths.workspace, paths.in, paths.out, paths.share]) {
    await mkdir(path, { recursive: true, mode: 0o755 });
  }
  const bind = (source: string, target: string): BindMount => ({ source, target, readOnly: false });
  const binds = [
    bind(paths.workspace, containerDirs.workspace),
    bind(paths.out, containerDirs.out),
    bind(paths.in, containerDirs.in),
    bind(paths.share, containerDirs.share),
  ];
  return { binds, paths };
}

export async function collectResults(
  _session: JobSession,
  _about: { end: ContainerEnd; timings: CompletionStats['timings'] },
): Promise<Results> {
  return {};
}
