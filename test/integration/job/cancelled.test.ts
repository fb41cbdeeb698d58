// How soon a job ends that is cancelled.
import { describe, expect, it } from 'vitest';
import { damageRecords, killRunning, makeJobRuns, startRunning } from '../../support/job-runs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { watchStandstill } from '../../support/standstill.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('a job that is cancelled', () => {
  it.each(['the server', 'an operator'])(
    'P58, P60: by %s is noticed within 4 s, its container gone within 10 s',
    async (who) => {
      const runs = await makeJobRuns();
      const job = runs.claim({ command: 'trap "" TERM; echo begun; while :; do sleep 1; done' });
      const { program } = await startRunning(runs, job);
      const still = watchStandstill();
      const askedAtMs = Date.now();
      const since = (atMs: number): number => atMs - askedAtMs - still.within(askedAtMs, atMs);
      if (who === 'the server') runs.ploy.cancelJob(idOf(job));
      else {
        const cancel = { version: 1, at: new Date().toISOString(), reason: 'enough', by: 'operator' };
        runs.write(`state/jobs/${idOf(job)}/cancel.json`, cancel);
      }
      const end = await program.ended;
      const goneMs = since(Date.now());
      expect(end.status).toBe(0);
      const cancelled = runs.record(job, 'progress.json')['cancelled'] as { at: string };
      const noticedMs = since(Date.parse(cancelled.at));
      console.log(`figure: cancelled by ${who}: noticed after ${noticedMs} ms, gone after ${goneMs} ms`);
      expect(noticedMs).toBeLessThan(4000);
      expect(goneMs).toBeLessThan(10_000);
      expect(await runs.containers(job)).toEqual([]);
      expect(runs.record(job, 'completion.json')['body']).toMatchObject({ status: 'Cancelled' });
      expect(runs.record(job, 'completion.json')['body']).not.toHaveProperty('exit_code');
      expect(runs.ploy.state.violations).toEqual([]);
    },
  );

  it('R32, P60: while its claim is damaged: its container is gone within 10 s', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; while :; do sleep 0.1; done' });
    await killRunning(runs, job);
    damageRecords(runs, job, ['claim.json'], '');
    const program = runs.start(['job', 'run', idOf(job)]);
    await program.waitFor('claim.json');
    const still = watchStandstill();
    const askedAtMs = Date.now();
    runs.ploy.cancelJob(idOf(job));
    expect((await program.ended).status).toBe(0);
    const endedAtMs = Date.now();
    expect(endedAtMs - askedAtMs - still.within(askedAtMs, endedAtMs)).toBeLessThan(10_000);
    expect(await runs.containers(job)).toEqual([]);
  });
});
