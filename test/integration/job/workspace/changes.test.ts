// What a job changes in a workspace: its diff, the baseline for the next one, and the hash that names it.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { commitBaseline } from '../../../../src/lib/job/workspace/baseline.ts';
import { lookOnce } from '../../../../src/lib/job/workspace/before.ts';
import { collectDiff } from '../../../../src/lib/job/workspace/diff.ts';
import { computeRepoShaOut } from '../../../../src/lib/job/workspace/repo-sha.ts';
import { makeKsuid } from '../../../support/ploy/jobs.ts';
import { gitIn, makeWorkspaces } from '../../../support/workspaces.ts';

/** Of the strict server's repository, where nobody has changed anything, and with one line more. */
const commitIn = '677309c34c05c14c41fff4bae28338182c3f41d3';
const shaOut = 'e7871ab03b81a4406b5a76a041a5b8769d98e5b2';

describe('the diff of a job', () => {
  it('P64: that has changed nothing is none, and leaves no file', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    writeFileSync(paths.diff, 'of an earlier time');
    expect(await collectDiff(ctx, paths, signal)).toBeUndefined();
    expect(existsSync(paths.diff)).toBe(false);
  });

  it('P53: is what git applies: new, changed, removed, renamed and binary files with any names', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const { workspace } = paths;
    const before = join(paths.scratch, 'before');
    gitIn('/', 'clone', '-q', workspace, before);
    writeFileSync(join(workspace, 'README.md'), '# Example\n++ more\n');
    writeFileSync(join(workspace, 'a name\nof "two" lines'), 'one\n');
    writeFileSync(join(workspace, 'bytes'), Buffer.from([0, 1, 2, 0xff]));
    writeFileSync(join(workspace, '.gitignore'), 'ignored\n');
    writeFileSync(join(workspace, 'ignored'), 'nobody sees it\n');
    symlinkSync('/etc/passwd', join(workspace, 'link'));
    rmSync(join(workspace, 'src/main.txt'));
    const diff = await collectDiff(ctx, paths, signal);
    if (diff?.gzip === undefined) throw new Error('there is no diff');
    const { gzip, ...rest } = diff;
    expect(rest).toEqual({ file: paths.diff, filesChanged: 6, linesAdded: 4, linesRemoved: 3 });
    const patch = gunzipSync(gzip);
    expect(readFileSync(paths.diff).equals(patch)).toBe(true);
    expect(patch.toString()).not.toContain('nobody sees it');
    expect(patch.toString()).not.toContain('root:');
    gitIn(before, 'apply', '--index', paths.diff);
    gitIn(workspace, 'add', '-A');
    expect(gitIn(before, 'write-tree')).toBe(gitIn(workspace, 'write-tree'));
  });

  it.each<[string, (workspace: string) => void]>([
    ['an empty file', (workspace) => writeFileSync(join(workspace, 'empty'), '')],
    ['another mode', (workspace) => chmodSync(join(workspace, 'README.md'), 0o755)],
  ])('P53: of %s alone is one', async (_, change) => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    change(paths.workspace);
    expect(await collectDiff(ctx, paths, signal)).toMatchObject({ filesChanged: 1, linesAdded: 0 });
  });

  it('names what is binary where the server would not take all of it, and is kept on disk where that is no help', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const noise = Buffer.alloc(24 << 20);
    for (let at = 0; at < noise.length; at += 32) {
      createHash('sha256').update(String(at)).digest().copy(noise, at);
    }
    writeFileSync(join(paths.workspace, 'noise'), noise);
    const named = await collectDiff(ctx, paths, signal);
    expect(gunzipSync(named?.gzip ?? '').toString()).toContain('Binary files /dev/null and b/noise differ');
    writeFileSync(join(paths.workspace, 'noise'), noise.toString('base64').replace(/.{76}/g, '$&\n'));
    expect(await collectDiff(ctx, paths, signal)).toMatchObject({ gzip: undefined, filesChanged: 1 });
  });
});

describe('the baseline', () => {
  it('P53: makes the next diff one against it, in a repository that git finds clean and whole', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const runId = makeKsuid('Run');
    const { paths } = await prepare({ job: { runId } });
    const about = { runId: 'Run1', jobId: 'Job1', signal };
    expect(await commitBaseline(ctx, paths, about)).toBe(false);
    writeFileSync(join(paths.workspace, 'new.txt'), 'one\n');
    expect((await collectDiff(ctx, paths, signal))?.filesChanged).toBe(1);
    expect(await commitBaseline(ctx, paths, about)).toBe(true);
    expect(await commitBaseline(ctx, paths, about)).toBe(false);
    // What a run that was killed here would find: the same diff again.
    expect((await collectDiff(ctx, paths, signal))?.filesChanged).toBe(1);
    const { paths: next } = await prepare({ job: { runId } });
    expect(await collectDiff(ctx, next, signal)).toBeUndefined();
    expect(gitIn(paths.workspace, 'status', '--porcelain')).toBe('');
    expect(gitIn(paths.workspace, 'log', '-1', '--format=%an <%ae> %s')).toBe(
      'ploy-baseline <ploy-baseline@ploy.local> Ploy: apply changes for run Run1 job Job1',
    );
    rmSync(paths.scratch, { recursive: true });
    expect(gitIn(paths.workspace, 'fsck', '--strict')).toBe('');
    expect(gitIn(paths.workspace, 'symbolic-ref', 'HEAD')).toBe('refs/heads/main');
  });

  it('does not write through links that somebody has put into the repository', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const elsewhere = join(paths.scratch, 'elsewhere');
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, 'main'), `${commitIn}\n`);
    rmSync(join(paths.workspace, '.git/refs/heads'), { recursive: true });
    symlinkSync(elsewhere, join(paths.workspace, '.git/refs/heads'));
    writeFileSync(join(paths.workspace, 'new.txt'), 'one\n');
    const about = { runId: 'Run1', jobId: 'Job1', signal };
    await expect(commitBaseline(ctx, paths, about)).rejects.toMatchObject({ code: 'input' });
    expect(readdirSync(elsewhere)).toEqual(['main']);
    expect(readFileSync(join(elsewhere, 'main'), 'utf8')).toBe(`${commitIn}\n`);
  });
});

describe('diff, baseline and hash of one look', () => {
  it.each([
    { who: 'the job alone', commits: false },
    { who: 'a container that commits by itself', commits: true },
  ])('P53 P65: are as each by itself, of $who', async ({ commits }) => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    writeFileSync(join(paths.workspace, 'README.md'), '# Example\nmore\n');
    if (commits) gitIn(paths.workspace, 'commit', '-qam', 'by itself');
    const git = { ...ctx, ...lookOnce({ signal }, paths) };
    expect(await collectDiff(git, paths, signal)).toMatchObject({ filesChanged: 1, linesAdded: 1 });
    const isCommitted = await commitBaseline(git, paths, { runId: 'Run1', jobId: 'Job1', signal });
    expect(isCommitted).toBe(!commits);
    expect(await computeRepoShaOut(git, paths, commitIn, signal)).toBe(shaOut);
  });
});

describe('repo_sha_out', () => {
  it('P65: is repo_sha_in for an unchanged tree, and a fixed commit for a fixed change, with a baseline or without', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    expect(gitIn(paths.workspace, 'rev-parse', 'HEAD')).toBe(commitIn);
    expect(await computeRepoShaOut(ctx, paths, commitIn, signal)).toBe(commitIn);
    writeFileSync(join(paths.workspace, 'README.md'), '# Example\nmore\n');
    expect(await computeRepoShaOut(ctx, paths, commitIn, signal)).toBe(shaOut);
    await commitBaseline(ctx, paths, { runId: 'Run1', jobId: 'Job1', signal });
    expect(await computeRepoShaOut(ctx, paths, commitIn, signal)).toBe(shaOut);
    const tree = gitIn(paths.workspace, 'rev-parse', 'HEAD^{tree}');
    const who = 'node <node@ploy.local> 0 +0000';
    const commit = `tree ${tree}\nparent ${commitIn}\nauthor ${who}\ncommitter ${who}\n\nploy repo_sha_v1\n`;
    writeFileSync(join(paths.scratch, 'commit'), commit);
    expect(gitIn(paths.workspace, 'hash-object', '-t', 'commit', join(paths.scratch, 'commit'))).toBe(shaOut);
  });

  it('P65: does not take for a change what an earlier job of the run has left', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const runId = makeKsuid('Run');
    const { paths } = await prepare({ job: { runId } });
    writeFileSync(join(paths.workspace, 'left.txt'), 'left\n');
    const left = await computeRepoShaOut(ctx, paths, commitIn, signal);
    const { paths: next } = await prepare({ job: { runId, payload: { repo_sha_in: left } } });
    expect(await computeRepoShaOut(ctx, next, left, signal)).toBe(left);
    await expect(computeRepoShaOut(ctx, next, 'main', signal)).rejects.toMatchObject({ code: 'input' });
  });
});
