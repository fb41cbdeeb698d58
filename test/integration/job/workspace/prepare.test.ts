// A job's workspace from the strict server's snapshot and bundles, over mutual TLS.
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../../../../src/lib/exec/run.ts';
import { buildArtifactBundle } from '../../../../src/lib/job/workspace/artifacts.ts';
import { openJob } from '../../../../src/lib/jobs/book.ts';
import type { PlannedFile } from '../../../../src/lib/ploy/plan.ts';
import { makeKsuid } from '../../../support/ploy/jobs.ts';
import { makeTarGz } from '../../../support/tar-bytes.ts';
import { gitIn, makeWorkspaces } from '../../../support/workspaces.ts';

describe('the workspace of a run', () => {
  it('P49, P80: is made once, lies where the original has it, and is what the container gets', async () => {
    const { ctx, ploy, prepare } = await makeWorkspaces();
    const runId = makeKsuid('Run');
    const { paths, binds } = await prepare({ job: { runId } });
    const run = join(ctx.paths.cacheDir, 'jobs/runs', runId);
    expect([paths.workspace, paths.share]).toEqual([join(run, 'workspace'), join(run, 'artifacts/shared')]);
    expect(gitIn(paths.workspace, 'status', '--porcelain')).toBe('');
    expect(gitIn(paths.workspace, 'rev-parse', 'HEAD')).toBe(ploy.state.snapshot?.commitSha);
    expect(binds.filter(({ target }) => target !== '/etc/ploy/certs')).toEqual([
      { source: paths.workspace, target: '/workspace', readOnly: false },
      { source: paths.in, target: '/in', readOnly: false },
      { source: paths.out, target: '/out', readOnly: false },
      { source: paths.share, target: '/share', readOnly: false },
    ]);
    expect(statSync(join(ctx.paths.cacheDir, 'jobs/runs', runId)).mode & 0o077).toBe(0);
    writeFileSync(join(paths.workspace, 'left'), 'by the first\n');
    const { paths: next } = await prepare({ job: { runId } });
    expect(readFileSync(join(next.workspace, 'left'), 'utf8')).toBe('by the first\n');
    expect(ploy.requestsTo('snapshot')).toHaveLength(1);
  });

  it('P49: is the first one there where two jobs make it at once', async () => {
    const { prepare } = await makeWorkspaces();
    const job = { runId: makeKsuid('Run') };
    const [one, other] = await Promise.all([prepare({ job }), prepare({ job })]);
    expect(one.paths.workspace).toBe(other.paths.workspace);
    expect(gitIn(one.paths.workspace, 'status', '--porcelain')).toBe('');
  });

  it('P49: is made anew where one without a repository is in its place', async () => {
    const { prepare } = await makeWorkspaces();
    const job = { runId: makeKsuid('Run') };
    const { paths } = await prepare({ job });
    rmSync(join(paths.workspace, '.git'), { recursive: true });
    writeFileSync(join(paths.workspace, 'left'), 'half\n');
    await prepare({ job });
    expect(existsSync(join(paths.workspace, 'left'))).toBe(false);
  });

  it('P49: is not made where a job before has changed what is not here any more', async () => {
    const { prepare } = await makeWorkspaces();
    const payload = { repo_sha_in: 'b'.repeat(40) };
    await expect(prepare({ job: { payload } })).rejects.toMatchObject({ name: 'InputError' });
  });

  it('P49: is fetched again where the connection breaks or the server is in trouble', async () => {
    const { ploy, prepare } = await makeWorkspaces();
    ploy.faults.add({ kind: 'answer', status: 503, text: 'away', route: 'snapshot', times: 1 });
    const { paths } = await prepare();
    expect(gitIn(paths.workspace, 'status', '--porcelain')).toBe('');
    expect(ploy.requestsTo('snapshot')).toHaveLength(2);
  });

  it('is gone a good while after its last job, and stays while a job of it is open', async () => {
    const { ctx, prepare } = await makeWorkspaces();
    const runs = [makeKsuid('Run'), makeKsuid('Run'), makeKsuid('Run')];
    const claim = { source: 'claim', claimedAt: new Date().toISOString(), payload: {} } as const;
    await openJob(ctx, { ...claim, runId: runs[1] ?? '', jobId: 'Job1' });
    for (const [index, runId] of runs.entries()) {
      const { paths } = await prepare({ job: { runId } });
      // With a new one the old ones go.
      if (index === 2) continue;
      for (const name of ['.', 'workspace', 'artifacts', 'scratch']) {
        utimesSync(join(paths.run, name), new Date(0), new Date(0));
      }
    }
    const kept = runs.map((runId) => existsSync(join(ctx.paths.cacheDir, 'jobs/runs', runId)));
    expect(kept).toEqual([false, true, true]);
  });
});

describe('the files of a spec', () => {
  it('P80: lie where they were asked for: copied to in, out and tmp, mounted in the home', async () => {
    const { ploy, prepare } = await makeWorkspaces();
    const { hash, bundleId } = ploy.addBundle({ content: 'hello\n' });
    const tree = ploy.addBundle({ 'content/a/b': 'deep\n' });
    const planned = (section: PlannedFile['section'], dst: string, readOnly = false): PlannedFile => ({
      ...{ section, hash, bundleId, dst, readOnly },
    });
    const { paths, binds } = await prepare({
      execution: {
        needsTmp: true,
        mountDockerSocket: true,
        files: [
          planned('in', '/in/config/one'),
          planned('out', '/out/two'),
          planned('tmp', '/tmp/three'),
          planned('home', '/root/.four', true),
          { ...planned('out', '/out/tree'), ...tree },
        ],
      },
    });
    const read = (...parts: string[]): string => readFileSync(join(...parts), 'utf8');
    expect(read(paths.in, 'config/one')).toBe('hello\n');
    expect(read(paths.out, 'two')).toBe('hello\n');
    expect(read(paths.out, 'tree/a/b')).toBe('deep\n');
    const tmp = binds.find(({ target }) => target === '/tmp');
    expect(read(tmp?.source ?? '', 'three')).toBe('hello\n');
    expect(statSync(tmp?.source ?? '').mode & 0o7777).toBe(0o1777);
    const home = binds.find(({ target }) => target === '/root/.four');
    expect([read(home?.source ?? ''), home?.readOnly]).toEqual(['hello\n', true]);
    expect(binds.map(({ target }) => target)).toContain('/var/run/docker.sock');
    expect(ploy.requestsTo('spec-bundle')).toHaveLength(2);
  });

  it.each([
    ['that is another one', 'abcdef0123456', makeTarGz([{ name: 'content', content: 'x' }])],
    ['with a link', undefined, makeTarGz([{ name: 'content', type: '2', target: 'x' }])],
    ['with nothing named content', undefined, makeTarGz([{ name: 'other', content: 'x' }])],
    ['with a name twice', undefined, makeTarGz([{ name: 'content' }, { name: './content' }])],
    ['with a file over 32 MiB', undefined, makeTarGz([{ name: 'content', sizeBytes: (32 << 20) + 1 }])],
  ])('P80: of a bundle %s are refused', async (_, wrongHash, bytes) => {
    const { ploy, prepare } = await makeWorkspaces();
    const { hash, bundleId } = ploy.addBundle(bytes);
    const file = { section: 'in', dst: '/in/a', readOnly: true, hash: wrongHash ?? hash, bundleId } as const;
    await expect(prepare({ execution: { files: [file] } })).rejects.toMatchObject({ name: 'InputError' });
  });
});

describe('the bundle of artifacts', () => {
  it('P52: has every file, no link that leaves, and the same bytes each time', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const { paths } = await prepare();
    expect(await buildArtifactBundle(ctx, paths, signal)).toBeUndefined();
    mkdirSync(join(paths.out, 'deep'));
    writeFileSync(join(paths.out, 'deep/result\nof "two" lines'), 'result\n');
    writeFileSync(Buffer.concat([Buffer.from(`${paths.out}/`), Buffer.from([0xff, 0x41])]), 'no text\n');
    writeFileSync(paths.stdout, 'hello\n');
    symlinkSync('/etc/passwd', join(paths.out, 'away'));
    symlinkSync('deep', join(paths.out, 'near'));
    await runProgram(['mkfifo', join(paths.out, 'pipe')], { timeoutMs: 60_000 });
    const bundle = await buildArtifactBundle(ctx, paths, signal);
    if (bundle === undefined) throw new Error('there is no bundle');
    const bytes = readFileSync(bundle.file);
    expect(bundle.sizeBytes).toBe(bytes.length);
    const { stdout } = await runProgram(['tar', '-tzf', bundle.file], { timeoutMs: 60_000 });
    const job = `artifacts/${paths.job.split('/').at(-1)}`;
    expect(stdout.trim().split('\n')).toEqual(
      expect.arrayContaining([
        `${job}/stdout.log`,
        `${job}/out/deep/result\\nof "two" lines`,
        `${job}/out/near`,
        `${job}/out/\\377A`,
      ]),
    );
    expect(stdout).not.toMatch(/away|pipe/);
    utimesSync(paths.stdout, new Date(1000), new Date(1000));
    const again = await buildArtifactBundle(ctx, paths, signal);
    expect(readFileSync(again?.file ?? '').equals(bytes)).toBe(true);
  });
});
