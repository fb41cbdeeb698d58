// What programs that work on a workspace have failed at, in their own words: whoever reads a job's end has nothing else.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { commitBaseline } from '../../../../src/lib/job/workspace/baseline.ts';
import { collectDiff } from '../../../../src/lib/job/workspace/diff.ts';
import { gitIn, makeWorkspaces } from '../../../support/workspaces.ts';

it('P59: a repository without a commit that a job leaves in the workspace is named', async () => {
  const { ctx, signal, prepare } = await makeWorkspaces();
  const { paths } = await prepare();
  mkdirSync(join(paths.workspace, 'sub'));
  gitIn(join(paths.workspace, 'sub'), 'init', '-q');
  const words = `git cannot use the workspace: 'sub/' does not have a commit checked out; adding files failed`;
  await expect(collectDiff(ctx, paths, signal)).rejects.toThrow(new RegExp(`^${words}$`));
});

it('P59: a disk that is full of a snapshot is told as such', async () => {
  const { ctx, prepare } = await makeWorkspaces();
  const jobs = join(ctx.paths.cacheDir, 'jobs');
  mkdirSync(jobs, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', jobs]);
  onTestFinished(() => void execFileSync('umount', ['-l', jobs]));
  await expect(prepare()).rejects.toThrow(
    /^cannot take the snapshot of run \w+: tar: .*: No space left on device$/,
  );
});

it('P53: an index that is no file any more is named where the baseline would be written', async () => {
  const { ctx, signal, prepare } = await makeWorkspaces();
  const { paths } = await prepare();
  const index = join(paths.workspace, '.git/index');
  rmSync(index, { force: true });
  mkdirSync(join(index, 'x'), { recursive: true });
  writeFileSync(join(paths.workspace, 'changed'), 'x');
  const about = { runId: 'run-1', jobId: 'job-1', signal };
  await expect(commitBaseline(ctx, paths, about)).rejects.toThrow(/^cannot write ".*index": EISDIR/);
});
