// Where a run's workspace and its jobs' artifacts lie: below `runs`, as the original has them, so that people and scripts find
// them; and beside them what is ours alone. Pure.
import { join } from 'node:path';
import type { BaseContext } from '../../context.ts';
import { safeFileId } from '../../ids.ts';

export type WorkspacePaths = {
  /** `runs`: a directory for each run. */
  runs: string;
  run: string;
  /** The checkout that all jobs of the run work on, one after another. */
  workspace: string;
  /** Of all jobs of the run: what becomes of it is the bundle. */
  artifacts: string;
  share: string;
  /** Of this job, below `artifacts`. */
  job: string;
  in: string;
  out: string;
  stdout: string;
  stderr: string;
  diff: string;
  inspect: string;
  /** Our own for this job, never part of a bundle and never writable for a container but its `tmp`. */
  scratch: string;
  tmp: string;
  /** Bundles, unpacked: a directory for each hash. */
  staged: string;
  /** The repository as we see it: our own configuration over the objects of the workspace's. */
  git: string;
  /** What the workspace was before the job. */
  before: string;
};

/** Ids come from outside: one that could leave its place in a path stands there as its hash. */
export function workspacePaths(
  { overrides, paths }: Pick<BaseContext, 'overrides' | 'paths'>,
  { runId, jobId }: { runId: string; jobId: string },
): WorkspacePaths {
  const runs = runsDir({ overrides, paths });
  const run = join(runs, safeFileId(runId));
  const artifacts = join(run, 'artifacts');
  const job = join(artifacts, safeFileId(jobId));
  const scratch = join(run, 'scratch', safeFileId(jobId));
  return {
    ...{ runs, run, artifacts, job, scratch },
    workspace: join(run, 'workspace'),
    share: join(artifacts, 'shared'),
    in: join(job, 'in'),
    out: join(job, 'out'),
    stdout: join(job, 'stdout.log'),
    stderr: join(job, 'stderr.log'),
    diff: join(job, 'diff.patch'),
    inspect: join(job, 'container.inspect.json'),
    tmp: join(scratch, 'tmp'),
    staged: join(scratch, 'staged'),
    git: join(scratch, 'git'),
    before: join(scratch, 'before.json'),
  };
}

export function runsDir({ overrides, paths }: Pick<BaseContext, 'overrides' | 'paths'>): string {
  return join(overrides.PLOYD_CACHE_HOME ?? join(paths.cacheDir, 'jobs'), 'runs');
}
