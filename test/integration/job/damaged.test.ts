// Records of a job that are damaged, and what the server is told besides: the image, the packages of a gate.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

/** With the image's own program. */
const gateSpec = { steps: [{ image: 'reeve-demo/worker:v1' }], build_gate: {} };

const damages: readonly [string, string][] = [
  ['empty', ''],
  ['of the wrong shape', '{"version":1,"steps":7}'],
  ['of NULs', '\0'.repeat(64)],
  ['of a newer version', '{"version":99}'],
];

function damage(runs: JobRuns, job: PloyJob, name: string, text: string): void {
  const directory = join(runs.root, 'state/jobs', idOf(job));
  for (const file of [name, `${name}.previous`]) writeFileSync(join(directory, file), text);
}

type Killed = { runs: JobRuns; job: PloyJob; container: string; letGo(): Promise<unknown> };

/** Its container counts its starts, and runs until it is let go. */
async function startAndKill(): Promise<Killed> {
  const runs = await makeJobRuns();
  const job = runs.claim({
    command: 'echo x >> /out/starts; echo begun; while [ ! -e /out/go ]; do sleep 0.1; done',
  });
  const program = runs.start(['job', 'run', idOf(job)]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  program.child.kill('SIGKILL');
  await program.ended;
  const [container = ''] = await runs.containers(job);
  const letGo = () => askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
  return { runs, job, container, letGo };
}

const setAside = (runs: JobRuns, job: PloyJob): string[] =>
  readdirSync(join(runs.root, 'state/jobs-ended', idOf(job))).filter((name) => name.includes('.corrupt-'));

describe('R32: a record that is damaged', () => {
  it.each(damages)(
    '%s: progress, is set aside, and the container that is there is taken up',
    async (_, text) => {
      const { runs, job, letGo } = await startAndKill();
      damage(runs, job, 'progress.json', text);
      await letGo();
      const end = await runs.reeve('job', 'run', idOf(job));
      expect([end.status, end.stderr.match(/progress\.json/g)?.length]).toEqual([0, 2]);
      expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
      expect(runs.artifact(job, 'out/starts')).toBe('x\n');
      expect(setAside(runs, job).length).toBeGreaterThan(0);
    },
  );

  it('progress, set aside by whoever looked before, does not run the container again', async () => {
    const { runs, job, container, letGo } = await startAndKill();
    await letGo();
    await askDocker(runs.socket, ['wait', container]);
    const directory = join(runs.root, 'state/jobs', idOf(job));
    renameSync(join(directory, 'progress.json'), join(directory, 'progress.json.corrupt-20260101T000000Z'));
    rmSync(join(directory, 'progress.json.previous'), { force: true });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(runs.artifact(job, 'out/starts')).toBe('x\n');
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  });

  it('progress, without a container is an error, as it may have run', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim();
    damage(runs, job, 'progress.json', '');
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it.each(damages)('%s: claim, ends the job as an error that says so', async (_, text) => {
    const runs = await makeJobRuns();
    const job = runs.claim();
    damage(runs, job, 'claim.json', text);
    const end = await runs.reeve('job', 'run', idOf(job));
    expect(end.status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/claim .* is damaged/);
    expect(setAside(runs, job).length).toBeGreaterThan(0);
  });
});

describe('what the server is told besides', () => {
  it('is the image of each job, once', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.images).toEqual(['reeve-demo/worker:v1']);
    expect(job.packages).toEqual([]);
  });

  it('and where it does not want it is one warning and one event, and the job goes on', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    runs.ploy.faults.add({ route: 'image', kind: 'answer', status: 409, text: 'not now' });
    const end = await runs.reeve('job', 'run', idOf(job));
    expect([end.status, end.stderr.match(/not now/g)?.length]).toEqual([0, 1]);
    expect(job.events.map(({ level }) => level)).toEqual(['warn']);
    expect(job.completions).toMatchObject([{ status: 'Success' }]);
  });

  it('are the packages that a gate has found', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ payload: { job_type: 'pre_gate', job_name: 'pre-gate' }, spec: gateSpec });
    const share = join(runs.root, 'cache/jobs/runs', job.payload.id, 'artifacts/shared');
    mkdirSync(share, { recursive: true });
    const packages = [
      { name: ' Zlib', versionInfo: '1.3' },
      { name: 'abc', versionInfo: '2' },
      { name: 'none' },
    ];
    writeFileSync(join(share, 'sbom.spdx.json'), JSON.stringify({ spdxVersion: 'SPDX-2.3', packages }));
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    const [container = ''] = await runs.containers(job);
    await askDocker(runs.socket, ['stop', container]);
    expect(await program.ended).toMatchObject({ status: 0, stderr: '' });
    expect(job.packages).toEqual([
      { package: 'abc', version: '2' },
      { package: 'zlib', version: '1.3' },
    ]);
    expect(job.completions).toHaveLength(1);
    expect(runs.ploy.state.violations).toEqual([]);
  });
});
