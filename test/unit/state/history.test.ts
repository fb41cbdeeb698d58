import { appendFile, open, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  appendHistory,
  type HistoryEvent,
  readHistory,
  trimHistory,
} from '../../../src/lib/state/history.ts';
import { anEvent } from '../../support/fault-cases.ts';
import { makeTempDir } from '../../support/temp.ts';

let paths = { stateDir: '' };
beforeEach(() => {
  paths = { stateDir: makeTempDir() };
});

const day = (number: number): Date => new Date(Date.UTC(2026, 0, number));
const eventAt = (at: Date, action: string): HistoryEvent => anEvent(action, { at: at.toISOString() });
const actionsOf = (events: HistoryEvent[]): string[] => events.map((event) => event.action);

describe('history', () => {
  it('is empty before the first event', async () => {
    expect(await readHistory(paths)).toEqual([]);
  });

  it('gives back what was appended, in order, readable by the owner only', async () => {
    const events = [
      anEvent('create', { project: 'blog', service: 'web', replica: 1 }),
      anEvent('remove', { outcome: 'failed', error: 'line one\nline two' }),
    ];
    await appendHistory(paths, events);
    await appendHistory(paths, []);
    await appendHistory(paths, [anEvent('start')]);
    expect(await readHistory(paths)).toEqual([...events, anEvent('start')]);
    expect((await stat(join(paths.stateDir, 'history.ndjson'))).mode & 0o7777).toBe(0o600);
  });

  it('leaves out a cut last line and goes on after it (R55)', async () => {
    await appendHistory(paths, [anEvent('first')]);
    await appendFile(join(paths.stateDir, 'history.ndjson'), '{"at":"2026-06-04T03:0');
    expect(actionsOf(await readHistory(paths))).toEqual(['first']);
    await appendHistory(paths, [anEvent('second')]);
    expect(actionsOf(await readHistory(paths))).toEqual(['first', 'second']);
  });

  it('leaves out a line that lacks a part, or has one that is no text (R55)', async () => {
    const { run: _, ...withoutRun } = anEvent('first');
    const lines = [withoutRun, { ...anEvent('second'), error: 5 }, anEvent('third')];
    await writeFile(
      join(paths.stateDir, 'history.ndjson'),
      lines.map((line) => JSON.stringify(line)).join('\n'),
    );
    expect(actionsOf(await readHistory(paths))).toEqual(['third']);
  });

  it('says which directory cannot be read', async () => {
    const stateDir = join(paths.stateDir, 'file');
    await writeFile(stateDir, '');
    await expect(readHistory({ stateDir })).rejects.toThrow(
      `cannot read "${stateDir}": ENOTDIR: not a directory`,
    );
  });

  it('survives NULs in the middle (R55)', async () => {
    await appendHistory(paths, [anEvent('first')]);
    await appendFile(join(paths.stateDir, 'history.ndjson'), Buffer.alloc(500));
    await appendHistory(paths, [anEvent('second')]);
    expect(actionsOf(await readHistory(paths))).toEqual(['first', 'second']);
  });

  it('filters by time, concern, project and service', async () => {
    await appendHistory(paths, [
      eventAt(day(1), 'old'),
      { ...eventAt(day(2), 'backup'), concern: 'backup' },
      { ...eventAt(day(3), 'web'), project: 'blog', service: 'web' },
      { ...eventAt(day(3), 'api'), project: 'blog', service: 'api' },
    ]);
    expect(actionsOf(await readHistory(paths, { since: day(2) }))).toEqual(['backup', 'web', 'api']);
    expect(actionsOf(await readHistory(paths, { concern: 'backup' }))).toEqual(['backup']);
    expect(actionsOf(await readHistory(paths, { project: 'blog' }))).toEqual(['web', 'api']);
    expect(actionsOf(await readHistory(paths, { project: 'blog', service: 'api' }))).toEqual(['api']);
  });

  it('bounds the error text of an event', async () => {
    await appendHistory(paths, [anEvent('run', { error: 'x'.repeat(100_000) })]);
    expect((await readHistory(paths))[0]?.error).toHaveLength(2000);
  });

  it('keeps 30 days: moved aside when its first event is 31 days old, removed when its last is 30', async () => {
    await writeHistory('history.ndjson', [eventAt(day(1), 'a'), eventAt(day(32), 'b')], day(32));
    await trimHistory(paths, day(31));
    expect(await readdir(paths.stateDir)).toEqual(['history.ndjson']);
    await trimHistory(paths, day(32));
    expect(await readdir(paths.stateDir)).toEqual(['history-2026-02-01T00-00-00-000Z.ndjson']);
    expect(actionsOf(await readHistory(paths))).toEqual(['a', 'b']);
    await writeHistory('history.ndjson', [eventAt(day(33), 'c'), eventAt(day(64), 'd')], day(64));
    await trimHistory(paths, day(64));
    expect(actionsOf(await readHistory(paths))).toEqual(['c', 'd']);
    expect(await readdir(paths.stateDir)).toEqual(['history-2026-03-05T00-00-00-000Z.ndjson']);
  });

  it('is trimmed by the first append of a process', async () => {
    await writeHistory('history.ndjson', [eventAt(day(1), 'a')], day(1));
    await appendHistory(paths, [eventAt(day(100), 'b')]);
    expect(actionsOf(await readHistory(paths))).toEqual(['b']);
  });

  it('loses no event of a process that has the file open while another moves it aside', async () => {
    const path = join(paths.stateDir, 'history.ndjson');
    await writeHistory('history.ndjson', [eventAt(day(1), 'a')], day(32));
    const rival = await open(path, 'a');
    await trimHistory(paths, day(32));
    await rival.write(`${JSON.stringify(eventAt(day(32), 'late'))}\n`);
    await rival.close();
    expect(actionsOf(await readHistory(paths))).toEqual(['a', 'late']);
  });

  it('writes concurrent batches whole', async () => {
    const batches = Array.from({ length: 20 }, (_, index) => [anEvent(`${index}-a`), anEvent(`${index}-b`)]);
    await Promise.all(batches.map((batch) => appendHistory(paths, batch)));
    const lines = (await readFile(join(paths.stateDir, 'history.ndjson'), 'utf8')).trimEnd().split('\n');
    expect(lines).toHaveLength(40);
    expect(actionsOf(await readHistory(paths)).sort()).toEqual(actionsOf(batches.flat()).sort());
  });
});

async function writeHistory(name: string, events: HistoryEvent[], lastWrite: Date): Promise<void> {
  const path = join(paths.stateDir, name);
  await writeFile(path, events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  await utimes(path, lastWrite, lastWrite);
}
