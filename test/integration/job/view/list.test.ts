// What `job list` and `job show` make of the records on disk: real processes, and no engine or server is needed.
import { existsSync, mkdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hourMs, makeJobRecords } from '../../../support/job-records.ts';

describe('job list', () => {
  it('has open jobs first, then those of the last day, and with --all every one that is kept', async () => {
    const jobs = makeJobRecords();
    const nothing = await jobs.reeve('job', 'list');
    expect([nothing.status, nothing.stdout]).toEqual([0, 'no job\n']);
    await jobs.end('of-last-week', 7 * 24 * hourMs);
    await jobs.end('of-today', 2 * hourMs);
    await jobs.end('just-now');
    await jobs.open('open-1', { progress: { containerId: 'f'.repeat(64) } });
    const listed = await jobs.reeve('job', 'list');
    expect([listed.status, listed.stderr]).toEqual([0, '']);
    expect(listed.stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '))).toEqual([
      'JOB | RUN | NAME | STATE | WHEN | CONTAINER',
      'open-1 | run-1 | mig-0 | running, nobody at it | for 1h | ffffffffffff',
      expect.stringMatching(/^just-now \| run-1 \| mig-0 \| Success \| ended .* ago$/),
      'of-today | run-1 | mig-0 | Success | ended 2h ago',
      '',
    ]);
    const all = await jobs.reeve('job', 'list', '--all', '--json');
    expect(idsOf(all.stdout)).toEqual(['open-1', 'just-now', 'of-today', 'of-last-week']);
    expect(JSON.parse(all.stdout)).toMatchObject({
      ...{ version: 1, command: 'job list', outcome: 'done', unreadable: [] },
      jobs: [
        { open: true, held: false, phase: 'running', status: null },
        {},
        {},
        { open: false, status: 'Success' },
      ],
    });
  });

  it('shows what is damaged, and what cannot be read does not hide the rest', async () => {
    const jobs = makeJobRecords();
    await jobs.open('damaged');
    jobs.write('state/jobs/damaged/claim.json', '{"version":1,');
    await jobs.open('newer');
    jobs.write('state/jobs/newer/claim.json', { version: 99 });
    await jobs.open('whole');
    jobs.write('state/jobs/no directory', 'x');
    const listed = await jobs.reeve('job', 'list', '--json');
    expect(listed.status).toBe(1);
    expect(idsOf(listed.stdout)).toEqual(['damaged', 'whole']);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      ...{ outcome: 'partial', jobs: [{ run: null, claimedAt: null }, { run: 'run-1' }] },
      unreadable: [{ key: 'newer', message: expect.stringContaining('it is version 99') }],
    });
    expect(jobs.read('state/jobs/damaged/claim.json')).toBe('{"version":1,');
    const shown = await jobs.reeve('job', 'show', 'damaged');
    expect([shown.status, shown.stdout]).toEqual([0, expect.stringContaining('its claim is damaged')]);
  });

  it('stays fast beside 10,000 ended jobs, and finds one of them', async () => {
    const jobs = makeJobRecords();
    const ended = {
      version: 1,
      decidedAt: '2026-06-04T03:00:00.000Z',
      attempts: 1,
      body: { status: 'Success' },
    };
    const claim = { version: 1, source: 'claim', claimedAt: '2026-06-04T03:00:00.000Z', runId: 'run-1' };
    const old = new Date(Date.now() - 48 * hourMs);
    for (let n = 0; n < 10_000; n += 1) {
      jobs.write(`state/jobs-ended/job-${n}/claim.json`, { ...claim, jobId: `job-${n}` });
      jobs.write(`state/jobs-ended/job-${n}/completion.json`, ended);
      utimesSync(join(jobs.stateDir, `jobs-ended/job-${n}`), old, old);
    }
    await jobs.open('open-1');
    const begunMs = performance.now();
    const listed = await jobs.reeve('job', 'list', '--json');
    const listMs = performance.now() - begunMs;
    expect(idsOf(listed.stdout)).toEqual(['open-1']);
    expect(listMs).toBeLessThan(5000);
    const shown = await jobs.reeve('job', 'show', 'job-9999', '--json');
    expect(JSON.parse(shown.stdout)).toMatchObject({
      job: { id: 'job-9999', open: false, status: 'Success' },
    });
    const all = await jobs.reeve('job', 'list', '--all', '--json');
    expect(idsOf(all.stdout)).toHaveLength(10_001);
  });
});

describe('ids', () => {
  it.each(['show', 'logs', 'cancel'])(
    '`job %s` refuses those that no job has, and none leads out (exit 65)',
    async (command) => {
      const jobs = makeJobRecords();
      await jobs.open('open-1');
      mkdirSync(join(jobs.stateDir, 'x'));
      for (const id of ['missing', '../x', '/etc', '.', 'open-1/', '\u001b[2J']) {
        const end = await jobs.reeve('job', command, id);
        expect([end.status, end.stdout]).toEqual([65, '']);
        expect(end.stderr).toContain(`job ${JSON.stringify(id)}: this node knows none of that id`);
      }
      expect(existsSync(join(jobs.stateDir, 'x/cancel.json'))).toBe(false);
    },
  );

  it('of the server that are no file names find their job', async () => {
    const jobs = makeJobRecords();
    await jobs.open('../x');
    expect((await jobs.reeve('job', 'show', '../x')).stdout).toContain('job ../x (mig-0) of run run-1');
  });
});

const idsOf = (stdout: string): string[] => JSON.parse(stdout).jobs.map(({ id }: { id: string }) => id);
