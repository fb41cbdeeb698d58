import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/report/log.ts';
import { endRun, readRun, readRuns, recordStep, startRun } from '../../../src/lib/state/run-record.ts';
import { makeTempDir } from '../../support/temp.ts';

let paths = { stateDir: '' };
beforeEach(() => {
  paths = { stateDir: makeTempDir() };
});

const at = (seconds: number): Date => new Date(Date.UTC(2026, 5, 4, 3, 0, seconds));
const inst = (seconds: number) => ({ paths, now: at(seconds), log: silentLog });
const run = { concern: 'reconcile', runId: 'run-1', pid: 123 };

describe('run records', () => {
  it('tell that a run has begun', async () => {
    const record = await startRun(inst(0), run);
    expect(record).toEqual({
      ...run,
      startedAt: '2026-06-04T03:00:00.000Z',
      endedAt: null,
      outcome: null,
      exitCode: null,
      durationMs: null,
      lastEndedAt: null,
      lastGoodAt: null,
    });
    expect(await readRun(inst(1), 'reconcile')).toEqual(record);
  });

  it('name the step under way and drop it at the end', async () => {
    const step = { name: 'pull', startedAt: at(1).toISOString(), deadlineAt: at(61).toISOString() };
    const stepping = await recordStep(paths, await startRun(inst(0), run), step);
    expect((await readRun(inst(1), 'reconcile'))?.step).toEqual(step);
    expect((await recordStep(paths, stepping, undefined)).step).toBeUndefined();
    const ended = await endRun(paths, stepping, { now: at(5), outcome: 'done', exitCode: 0 });
    expect(ended).toEqual({
      ...run,
      startedAt: '2026-06-04T03:00:00.000Z',
      endedAt: '2026-06-04T03:00:05.000Z',
      outcome: 'done',
      exitCode: 0,
      durationMs: 5000,
      lastEndedAt: '2026-06-04T03:00:05.000Z',
      lastGoodAt: '2026-06-04T03:00:05.000Z',
    });
    expect(await readRun(inst(9), 'reconcile')).toEqual(ended);
  });

  it('keep the last good end through failed and unfinished runs', async () => {
    await endRun(paths, await startRun(inst(0), run), { now: at(5), outcome: 'done', exitCode: 0 });
    const failed = await startRun(inst(10), run);
    await endRun(paths, failed, { now: at(15), outcome: 'failed', exitCode: 1, error: 'no engine' });
    const running = await startRun(inst(20), run);
    expect(running).toMatchObject({
      endedAt: null,
      lastEndedAt: '2026-06-04T03:00:15.000Z',
      lastGoodAt: '2026-06-04T03:00:05.000Z',
    });
    expect(running.error).toBeUndefined();
  });

  it('give a run no negative length when the clock goes back', async () => {
    const record = await startRun(inst(30), run);
    expect((await endRun(paths, record, { now: at(0), outcome: 'done', exitCode: 0 })).durationMs).toBe(0);
  });

  it('are listed by concern; a damaged one is left out and left alone', async () => {
    await startRun(inst(0), { ...run, concern: 'heartbeat' });
    await startRun(inst(0), { ...run, concern: 'backup' });
    await writeFile(join(paths.stateDir, 'runs', 'edge.json'), '{"version":1,"concern":"edge"}');
    await writeFile(join(paths.stateDir, 'runs', 'notes.txt'), 'theirs');
    expect((await readRuns(inst(1))).map((record) => record.concern)).toEqual(['backup', 'heartbeat']);
    expect(await readdir(join(paths.stateDir, 'runs'))).toContain('edge.json');
  });

  it('start anyway over a damaged record (R32)', async () => {
    await mkdir(join(paths.stateDir, 'runs'));
    await writeFile(join(paths.stateDir, 'runs', 'reconcile.json'), '');
    const record = await startRun(inst(0), run);
    expect(await readRun(inst(1), 'reconcile')).toEqual(record);
  });

  it('are none before the first run', async () => {
    expect(await readRuns(inst(0))).toEqual([]);
  });

  it('have no names that could leave their directory', async () => {
    await expect(startRun(inst(0), { ...run, concern: '../ports' })).rejects.toThrow(
      'not a concern: "../ports"',
    );
  });
});
