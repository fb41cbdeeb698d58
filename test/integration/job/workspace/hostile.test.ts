// Archives and repositories of somebody who means harm: nothing leaves its place, and nothing of theirs is ever run.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { commitBaseline } from '../../../../src/lib/job/workspace/baseline.ts';
import { collectDiff } from '../../../../src/lib/job/workspace/diff.ts';
import { workspacePaths } from '../../../../src/lib/job/workspace/paths.ts';
import { computeRepoShaOut } from '../../../../src/lib/job/workspace/repo-sha.ts';
import { makeKsuid } from '../../../support/ploy/jobs.ts';
import { makeTarGz, type RawMember } from '../../../support/tar-bytes.ts';
import { gitIn, makeWorkspaces } from '../../../support/workspaces.ts';

const file = (name: string, rest: Partial<RawMember> = {}): RawMember => ({ name, content: 'x', ...rest });

describe('a snapshot that is not what it should be', () => {
  it.each<[string, RegExp, readonly RawMember[]]>([
    ['an absolute name', /leaves the archive/, [file('/tmp/reeve-escaped')]],
    ['a name with ".."', /leaves the archive/, [file('a/../../reeve-escaped')]],
    [
      'a file behind a link',
      /lies behind a link/,
      [{ name: 'out', type: '2', target: '/tmp' }, file('out/reeve-escaped')],
    ],
    [
      'a file in the place of a link',
      /there twice/,
      [{ name: 'out', type: '2', target: '/tmp/reeve-escaped' }, file('out')],
    ],
    ['a hard link to outside', /link that leaves/, [{ name: 'h', type: '1', target: '../../etc/passwd' }]],
    ['an absolute hard link', /link that leaves/, [{ name: 'h', type: '1', target: '/etc/passwd' }]],
    [
      'a hard link to a link',
      /link that leaves/,
      [
        { name: 's', type: '2', target: '/etc/passwd' },
        { name: 'h', type: '1', target: 's' },
      ],
    ],
    ["git's own directory elsewhere", /link that leaves/, [{ name: '.git', type: '2', target: '/root' }]],
    ['objects of elsewhere', /link that leaves/, [{ name: '.git/objects', type: '2', target: '../..' }]],
    ['a device', /neither file, directory nor link/, [{ name: 'null', type: '3' }]],
    ['a pipe', /neither file, directory nor link/, [{ name: 'pipe', type: '6' }]],
    ['a file too large for any disk', /larger than/, [file('large', { sizeBytes: 2 ** 32 * 8 - 1 })]],
    [
      'members hidden behind a directory with content',
      /leaves the archive/,
      [{ name: 'd/', type: '5', content: Buffer.alloc(512, 1) }, file('../reeve-escaped')],
    ],
    ['no repository', /\.git/, [file('README.md')]],
  ])('P49: with %s is refused as a whole, and leaves nothing', async (_, reason, members) => {
    const { ctx, ploy, prepare } = await makeWorkspaces();
    const runId = makeKsuid('Run');
    const commitSha = ploy.state.snapshot?.commitSha ?? '';
    ploy.state.snapshots.set(runId, { commitSha, tarGz: makeTarGz(members) });
    await expect(prepare({ job: { runId } })).rejects.toMatchObject({
      ...{ name: 'InputError', message: expect.stringMatching(reason) },
    });
    const { run, workspace } = workspacePaths(ctx, { runId, jobId: 'any' });
    expect(existsSync(workspace)).toBe(false);
    expect(readdirSync(run).sort()).toEqual(['artifacts', 'scratch']);
    expect(existsSync('/tmp/reeve-escaped') || existsSync(join(run, 'reeve-escaped'))).toBe(false);
  });

  it('P49: that ends early, is no archive or has another commit is refused', async () => {
    const { ploy, prepare } = await makeWorkspaces();
    const whole = ploy.state.snapshot;
    if (whole === undefined) throw new Error('there is no snapshot');
    for (const [tarGz, reason] of [
      [whole.tarGz.subarray(0, whole.tarGz.length >> 1), /^cannot take the snapshot.*: \S/],
      [Buffer.from('this is no archive'), /^cannot take the snapshot.*: \S/],
    ] as const) {
      const runId = makeKsuid('Run');
      ploy.state.snapshots.set(runId, { commitSha: whole.commitSha, tarGz });
      await expect(prepare({ job: { runId } })).rejects.toMatchObject({
        ...{ name: 'InputError', message: expect.stringMatching(reason) },
      });
    }
    const other = 'a'.repeat(40);
    await expect(
      prepare({ job: { payload: { commit_sha: other, repo_sha_in: other } } }),
    ).rejects.toMatchObject({ message: expect.stringMatching(`${whole.commitSha}.*${other}`) });
  });
});

describe('a repository that names programs', () => {
  it('P53, P65: never has one of them run by us, nor lends us files of elsewhere', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const { workspace, scratch } = paths;
    const proof = join(scratch, 'proof');
    const program = join(scratch, 'program');
    writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> '${proof}'\ncat\n`);
    chmodSync(program, 0o755);
    const settings: readonly [string, string][] = [
      ...(['core.fsmonitor', 'core.sshCommand', 'core.pager', 'core.editor', 'gpg.program'] as const).map(
        (name): [string, string] => [name, program],
      ),
      ['commit.gpgSign', 'true'],
      ['diff.external', program],
      ['filter.bad.clean', program],
      ['filter.bad.smudge', program],
      ['filter.bad.process', program],
      ['filter.bad.required', 'true'],
      ['diff.bad.textconv', program],
      ['diff.bad.command', program],
      ['extensions.partialClone', 'origin'],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.url', `ext::${program}`],
      ['protocol.ext.allow', 'always'],
      ['core.hooksPath', join(scratch, 'hooks')],
    ];
    for (const [name, value] of settings) gitIn(workspace, 'config', name, value);
    for (const hooks of [join(scratch, 'hooks'), join(workspace, '.git/hooks')]) {
      mkdirSync(hooks, { recursive: true });
      for (const name of ['pre-commit', 'post-commit', 'reference-transaction', 'post-index-change']) {
        writeFileSync(join(hooks, name), `#!/bin/sh\necho hook >> '${proof}'\n`, { mode: 0o755 });
      }
    }
    writeFileSync(join(workspace, '.gitattributes'), '* filter=bad diff=bad\n');
    writeFileSync(
      join(workspace, '.gitmodules'),
      `[submodule "m"]\npath = m\nurl = x\nupdate = !${program}\n`,
    );
    writeFileSync(join(workspace, 'new.txt'), 'one\n');
    symlinkSync('/etc', join(workspace, 'etc'));
    const diff = await collectDiff(ctx, paths, signal);
    expect(gunzipSync(diff?.gzip ?? '').toString()).toContain('+one');
    expect(await commitBaseline(ctx, paths, { runId: 'Run1', jobId: 'Job1', signal })).toBe(true);
    expect(await computeRepoShaOut(ctx, paths, 'a'.repeat(40), signal)).toMatch(/^[0-9a-f]{40}$/);
    expect(existsSync(proof) ? readFileSync(proof, 'utf8') : '').toBe('');
  });

  it('P53: has a work tree of its own alone, whatever its configuration says', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const secrets = join(paths.scratch, 'secrets');
    mkdirSync(secrets);
    writeFileSync(join(secrets, 'key'), 'secret\n');
    gitIn(paths.workspace, 'config', 'core.worktree', secrets);
    writeFileSync(join(paths.workspace, 'new.txt'), 'one\n');
    const diff = await collectDiff(ctx, paths, signal);
    expect(gunzipSync(diff?.gzip ?? '').toString()).not.toContain('secret');
    expect(diff?.filesChanged).toBe(1);
  });

  it('P53: that borrows objects, or is a link itself, is refused', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const alternates = join(paths.workspace, '.git/objects/info/alternates');
    writeFileSync(alternates, '/srv/other/.git/objects\n');
    await expect(collectDiff(ctx, paths, signal)).rejects.toMatchObject({ name: 'InputError' });
    rmSync(join(paths.workspace, '.git'), { recursive: true });
    symlinkSync('/srv/other/.git', join(paths.workspace, '.git'));
    await expect(collectDiff(ctx, paths, signal)).rejects.toMatchObject({ name: 'InputError' });
  });

  it('P53: with a repository in it is never looked into by git', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const inner = join(paths.workspace, 'inner');
    gitIn('/', 'init', '-q', inner);
    writeFileSync(join(inner, 'a'), 'a\n');
    gitIn(inner, 'add', 'a');
    gitIn(inner, 'commit', '-q', '-m', 'inner');
    const proof = join(paths.scratch, 'proof');
    gitIn(inner, 'config', 'core.fsmonitor', `touch '${proof}'; false`);
    rmSync(proof, { force: true });
    const diff = await collectDiff(ctx, paths, signal);
    expect(gunzipSync(diff?.gzip ?? '').toString()).toContain('+Subproject commit');
    await commitBaseline(ctx, paths, { runId: 'Run1', jobId: 'Job1', signal });
    writeFileSync(join(inner, 'a'), 'b\n');
    await computeRepoShaOut(ctx, paths, 'a'.repeat(40), signal);
    expect(existsSync(proof)).toBe(false);
  });

  it('P53: with a repository in it whose name is no text is refused before git could look into it', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    const plain = join(paths.scratch, 'plain');
    gitIn('/', 'init', '-q', plain);
    writeFileSync(join(plain, 'a'), 'a\n');
    gitIn(plain, 'add', 'a');
    gitIn(plain, 'commit', '-q', '-m', 'inner');
    const odd = Buffer.concat([Buffer.from(`${paths.workspace}/`), Buffer.from([0xff, 0x41])]);
    renameSync(plain, odd);
    expect((await collectDiff(ctx, paths, signal))?.filesChanged).toBe(1);
    await expect(computeRepoShaOut(ctx, paths, 'a'.repeat(40), signal)).rejects.toMatchObject({
      ...{ name: 'InputError', message: expect.stringMatching('its name is no text') },
    });
  });
});
