import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  closeJob,
  openJob,
  readJob,
  restoreClaim,
  writeCompletion,
  writeProgress,
} from '../../../src/lib/jobs/book.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
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

describe('a claim that is large', () => {
  const claimOf = (numbers: number) => ({
    ...({ source: 'claim', claimedAt: at, runId: 'r', jobId: 'a' } as const),
    payload: { spec: { steps: Array.from({ length: numbers }, () => [1]) } },
  });
  const open = async (machine: JobRecordsMachine, numbers: number) =>
    await openJob({ ...pathsOf(machine), clock: systemClock, log: silentLog }, claimOf(numbers));

  it('is read as it was written, whatever a caller or the server may send', async () => {
    const machine = makeJobRecords();
    expect(await open(machine, 3_900_000)).toBe(true);
    const ctx = { ...pathsOf(machine), clock: systemClock, log: silentLog };
    const { claim } = await readJob(ctx, machine.placeOf('a'));
    expect(JSON.stringify(claim)).toHaveLength(JSON.stringify(claimOf(3_900_000)).length);
  });

  it('beyond what can be read back is refused, and leaves nothing', async () => {
    const machine = makeJobRecords();
    await expect(open(machine, 4_300_000)).rejects.toMatchObject({ code: 'too-large' });
    expect(readdirSync(join(machine.stateDir, 'jobs'))).toEqual([]);
  });
});
