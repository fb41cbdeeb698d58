// Jobs of one run, one after another on its workspace: each tells what it has changed itself, wherever it was killed.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { commitBaseline } from '../../../src/lib/job/workspace/baseline.ts';
import { collectDiff } from '../../../src/lib/job/workspace/diff.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import type { JobOptions } from '../../support/ploy/jobs.ts';
import { makeKsuid } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { makeWorkspaces } from '../../support/workspaces.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const patchesOf = (job: PloyJob): string[] => job.diffs.map(({ patch }) => patch);
const addedIn = (patch = ''): string[] =>
  [...patch.matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, path = '']) => path);

async function runJob(runs: JobRuns, options: JobOptions): Promise<PloyJob> {
  const job = runs.claim(options);
  const end = await runs.reeve('job', 'run', idOf(job));
  expect([end.status, end.stderr]).toEqual([0, '']);
  return job;
}

describe('P53, P64, P65: the jobs of a run', () => {
  it('tell each its own changes, and what the one before has left is none', async () => {
    const runs = await makeJobRuns();
    const runId = makeKsuid('Run');
    const first = await runJob(runs, { runId, command: 'echo a > a; echo more >> README.md' });
    expect(addedIn(patchesOf(first)[0])).toEqual(['README.md', 'a']);
    const shaOut = first.completions[0]?.repo_sha_out ?? '';
    expect(shaOut).toMatch(/^[0-9a-f]{40}$/);
    const idle = await runJob(runs, { runId, command: 'cat a', payload: { repo_sha_in: shaOut } });
    expect([idle.diffs, idle.completions[0]?.repo_sha_out]).toEqual([[], shaOut]);
    const second = await runJob(runs, {
      runId,
      command: 'echo b > b; rm a',
      payload: { repo_sha_in: shaOut },
    });
    expect(patchesOf(second)).toHaveLength(1);
    expect(addedIn(patchesOf(second)[0])).toEqual(['b']);
    expect(patchesOf(second)[0]).toContain('deleted file mode 100644');
    expect(second.completions[0]?.repo_sha_out).not.toBe(shaOut);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('tell with it what a gate before has left, as only a mig makes a baseline', async () => {
    const { ctx, signal, prepare } = await makeWorkspaces();
    const runId = makeKsuid('Run');
    const { paths: gate } = await prepare({ job: { runId, payload: { job_type: 'pre_gate' } } });
    writeFileSync(join(gate.workspace, 'of-the-gate'), 'left\n');
    const { paths } = await prepare({ job: { runId } });
    writeFileSync(join(paths.workspace, 'of-the-mig'), 'new\n');
    const diff = await collectDiff(ctx, paths, signal);
    expect(addedIn(gunzipSync(diff?.gzip ?? '').toString())).toEqual(['of-the-gate', 'of-the-mig']);
    expect(await commitBaseline(ctx, paths, { runId, jobId: 'Job1', signal })).toBe(true);
    const { paths: next } = await prepare({ job: { runId } });
    expect(await collectDiff(ctx, next, signal)).toBeUndefined();
  });

  it.each(['diff', 'artifact', 'complete'] as const)(
    'R59: killed while the server has %s and before it has said so, tell the same once more or nothing, never something else',
    async (route) => {
      const runs = await makeJobRuns();
      const command = 'echo x >> /out/starts; echo new > new';
      const whole = await runJob(runs, { command });
      const job = runs.claim({ command });
      const heal = runs.ploy.faults.add({ route, kind: 'silence', committed: true, jobId: idOf(job) });
      const program = runs.start(['job', 'run', idOf(job)]);
      const has = { diff: job.diffs, artifact: job.artifacts, complete: job.completions }[route];
      await runs.ploy.waitUntil(`what came by ${route}`, () => has.length > 0);
      program.child.kill('SIGKILL');
      await program.ended;
      heal();
      expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
      expect([runs.isClosed(job), runs.artifact(job, 'out/starts')]).toEqual([true, 'x\n']);
      expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
      expect(job.completions[0]?.repo_sha_out).toBe(whole.completions[0]?.repo_sha_out);
      expect([...new Set(patchesOf(job))]).toEqual(patchesOf(whole));
      expect(runs.ploy.state.violations).toEqual([]);
    },
  );
});
