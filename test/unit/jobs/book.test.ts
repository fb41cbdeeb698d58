import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { closeJob, restoreClaim, writeCompletion, writeProgress } from '../../../src/lib/jobs/book.ts';
import { type JobRecordsMachine, makeJobRecords } from '../../support/job-records.ts';

const settled = { at: '2026-06-04T12:00:00.000Z', how: 'acknowledged' as const };
const at = '2026-06-04T12:00:00.000Z';
const logs = { nextChunk: 0, sentBytes: 0, closed: false };

function pathsOf({ stateDir }: JobRecordsMachine) {
  return { paths: { stateDir } } as Parameters<typeof closeJob>[0];
}

describe('a job that has been closed meanwhile', () => {
  it.each([
    [
      'claim',
      (machine: JobRecordsMachine) =>
        restoreClaim(machine.placeOf('a'), { source: 'adopted', claimedAt: at, runId: 'r', jobId: 'a' }),
    ],
    [
      'progress',
      (machine: JobRecordsMachine) =>
        writeProgress(machine.placeOf('a'), { phase: 'running', since: at, logs, steps: [] }),
    ],
    [
      'completion',
      (machine: JobRecordsMachine) =>
        writeCompletion(machine.placeOf('a'), { body: { status: 'Error' }, decidedAt: at, attempts: 0 }),
    ],
  ])('does not get its directory back by a record of its %s', async (_, write) => {
    const machine = makeJobRecords();
    await machine.open('a', { completion: { settled } });
    await closeJob(pathsOf(machine), 'a');
    await expect(write(machine)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(readdirSync(join(machine.stateDir, 'jobs'))).toEqual([]);
  });
});

describe('a job that is both open and ended', () => {
  it.each([
    ['keeps the one that was settled', { completion: { settled } }, true],
    [
      'keeps the one that is closed now where the other was never settled',
      { completion: { attempts: 0 } },
      false,
    ],
  ])('%s when it is closed, and is open no more', async (_, records, keepsFirst) => {
    const machine = makeJobRecords();
    await machine.end('a', 0, records);
    const ended = join(machine.stateDir, 'jobs-ended/a');
    renameSync(ended, join(machine.stateDir, 'kept'));
    await machine.open('a', { completion: { settled } });
    mkdirSync(dirname(ended), { recursive: true });
    renameSync(join(machine.stateDir, 'kept'), ended);
    mkdirSync(join(ended, 'first'));
    await closeJob(pathsOf(machine), 'a');
    expect(readdirSync(join(machine.stateDir, 'jobs'))).toEqual([]);
    expect(existsSync(join(ended, 'first'))).toBe(keepsFirst);
    expect(readdirSync(ended)).toContain('completion.json');
  });
});
