// What programs that work on a workspace have failed at, in their own words: whoever reads a job's end has nothing else.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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
