// The pure parts of workspaces: where they lie, what of an archive is taken, what git says, when artifacts go out.
import { describe, expect, it } from 'vitest';
import { isBundleWanted } from '../../../../src/lib/job/workspace/artifacts.ts';
import { findPackedRef, parseHead } from '../../../../src/lib/job/workspace/head.ts';
import { createMemberCheck, isInside, parseMember } from '../../../../src/lib/job/workspace/members.ts';
import { workspacePaths } from '../../../../src/lib/job/workspace/paths.ts';
import { renderRepoSha } from '../../../../src/lib/job/workspace/repo-sha.ts';
import { parseShortStat } from '../../../../src/lib/job/workspace/short-stat.ts';

const paths = { cacheDir: '/var/cache/reeve' } as Parameters<typeof workspacePaths>[0]['paths'];

describe('the places of a run', () => {
  it('P49, P80: are the original ones below PLOYD_CACHE_HOME, or below our own cache', () => {
    const about = { runId: 'Run1', jobId: 'Job1' };
    const ours = workspacePaths({ overrides: {}, paths }, about);
    expect(ours.workspace).toBe('/var/cache/reeve/jobs/runs/Run1/workspace');
    const theirs = workspacePaths({ overrides: { PLOYD_CACHE_HOME: '/cache' }, paths }, about);
    expect(theirs).toMatchObject({
      ...{ workspace: '/cache/runs/Run1/workspace', share: '/cache/runs/Run1/artifacts/shared' },
      ...{ in: '/cache/runs/Run1/artifacts/Job1/in', out: '/cache/runs/Run1/artifacts/Job1/out' },
      stdout: '/cache/runs/Run1/artifacts/Job1/stdout.log',
      stderr: '/cache/runs/Run1/artifacts/Job1/stderr.log',
      diff: '/cache/runs/Run1/artifacts/Job1/diff.patch',
      inspect: '/cache/runs/Run1/artifacts/Job1/container.inspect.json',
    });
  });

  it('are never outside, whatever an id is', () => {
    const { run, job } = workspacePaths({ overrides: {}, paths }, { runId: '../..', jobId: 'a/../../b' });
    expect(run).toMatch(/^\/var\/cache\/reeve\/jobs\/runs\/[0-9a-f]{64}$/);
    expect(job).toMatch(/\/artifacts\/[0-9a-f]{64}$/);
  });
});

describe('a member of an archive', () => {
  it.each([
    [
      '-rw-r--r-- 0/0               5 2026-11-30 07:07:08 "./we ird\\n\\"n\\" \\303\\244"',
      { kind: 'file', name: './we ird\n"n" \u00c3\u00a4', sizeBytes: 5, target: '' },
    ],
    [
      'lrwxrwxrwx 0/0               0 2026-11-30 07:07:08 "./d/l" -> "../x -> \\"y"',
      { kind: 'symlink', name: './d/l', sizeBytes: 0, target: '../x -> "y' },
    ],
    [
      'hrwsr-xr-x 0/0               0 2026-11-30 07:07:08 "./h" link to "./s"',
      { kind: 'hardlink', name: './h', sizeBytes: 0, target: './s' },
    ],
    ['crw-r--r-- 0/0             1,3 2026-11-30 07:07:08 "./dev"', { kind: 'other', name: './dev' }],
    ['drwxr-xr-x 0/0               0 2026-11-30 07:07:08.5 "./"', { kind: 'directory', name: './' }],
  ])('is read from %s', (line, member) => {
    expect(parseMember(line)).toMatchObject(member);
  });

  it.each(['', 'nothing', '-rw-r--r-- 0/0 5 date "a" "b"', '-rw-r--r-- 0/0 5 date "a'])(
    'is never guessed from %j',
    (line) => {
      expect(() => parseMember(line)).toThrow('a member is like none');
    },
  );

  it('is counted with all before it', () => {
    const limits = { members: 2, totalBytes: 10, fileBytes: 8, links: true };
    const file = (name: string, sizeBytes: number) =>
      ({ kind: 'file', name, sizeBytes, target: '' }) as const;
    const check = createMemberCheck(limits);
    check(file('a', 6));
    expect(() => check(file('b', 6))).toThrow('more than 10 bytes');
    expect(() => check(file('c', 0))).toThrow('more than 2 members');
    expect(() => createMemberCheck(limits)(file('a', 9))).toThrow('larger than 8 bytes');
  });

  it('P49: may be a link to anywhere in the work tree, as git keeps it, and lead nowhere', () => {
    const check = createMemberCheck({ members: 9, totalBytes: 9, fileBytes: 9, links: true });
    const link = (name: string, target: string) => ({ kind: 'symlink', name, sizeBytes: 0, target }) as const;
    check(link('./a', '/etc/passwd'));
    expect(() => check(link('./a/b', 'x'))).toThrow('lies behind a link');
    expect(() => check(link('sub/.git/x', '../../../y'))).toThrow('is a link that leaves');
  });

  it('is inside or not by the words of its link', () => {
    expect([isInside('a/b', '../c'), isInside('a/b', '../../c'), isInside('a', '/c')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(isInside('p', 'a/../../b')).toBe(false);
  });
});

describe('what git says', () => {
  it('is a head of a branch or of a commit, and nothing else', () => {
    const commit = 'a'.repeat(40);
    expect(parseHead(`${commit}\n`)).toEqual({ kind: 'commit', commit });
    expect(parseHead('ref: refs/heads/main\n')).toEqual({ kind: 'branch', ref: 'refs/heads/main' });
    for (const text of ['', 'ref: ../../x', 'ref: refs/../x', 'ref: refs/heads/.x', 'ref: HEAD']) {
      expect(parseHead(text)).toBeUndefined();
    }
    expect(findPackedRef(`# pack-refs\n${commit} refs/heads/main\n`, 'refs/heads/main')).toBe(commit);
  });

  it('P53, P64: is a count of changes, or that there is none', () => {
    expect(parseShortStat('')).toBeUndefined();
    expect(parseShortStat(' 1 file changed, 1 insertion(+)\n')).toEqual({
      ...{ filesChanged: 1, linesAdded: 1, linesRemoved: 0 },
    });
    expect(parseShortStat(' 12 files changed, 3 insertions(+), 1 deletion(-)\n')).toEqual({
      ...{ filesChanged: 12, linesAdded: 3, linesRemoved: 1 },
    });
  });

  it('P65: is hashed as git would hash the commit that nobody makes', () => {
    const [repoShaIn, before, after] = ['1'.repeat(40), '2'.repeat(40), '3'.repeat(40)];
    expect(renderRepoSha({ repoShaIn, before, after: before })).toBe(repoShaIn);
    expect(renderRepoSha({ repoShaIn, before, after })).toBe('7c321b4dc52babbcf56222696a99fa11946b61f2');
    expect(() => renderRepoSha({ repoShaIn: 'main', before, after })).toThrow('is no hash');
  });
});

describe('the artifacts of a run', () => {
  it.each([
    ['mig', true, true, 'Success', true],
    ['mig', false, true, 'Success', false],
    ['mig', true, false, 'Success', false],
    ['mig', false, false, 'Fail', true],
    ['pre_gate', false, false, 'Success', false],
    ['pre_gate', false, false, 'Error', true],
    ['post_gate', false, false, 'Success', true],
    ['post_gate', true, false, 'Cancelled', true],
  ] as const)(
    'P52: after %s, last %s, gates disabled %s, %s: go out is %s',
    (jobType, isLast, gatesDisabled, status, wanted) => {
      expect(isBundleWanted({ jobType, isLast, gatesDisabled, status })).toBe(wanted);
    },
  );
});
