import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeHolder, readHolder, renderHolder } from '../../../src/lib/lock/holder.ts';
import { parseWait } from '../../../src/lib/lock/wait.ts';
import { makeTempDir } from '../../support/temp.ts';

const since = '2026-06-04T12:01:03.000Z';

describe('describeHolder', () => {
  it('names pid, command, time and age', () => {
    const holder = { pid: 123, command: 'reeve reconcile', since };
    expect(describeHolder(holder, new Date('2026-06-04T12:01:07.000Z'))).toBe(
      'pid 123, `reeve reconcile`, since 12:01:03 (4s ago)',
    );
  });

  it('names the day of a lock that is held for longer than one', () => {
    expect(describeHolder({ pid: 1, command: 'x', since }, new Date('2026-06-06T12:01:03.000Z'))).toBe(
      'pid 1, `x`, since 2026-06-04 12:01:03 (2d ago)',
    );
  });

  it('gives no negative age when the clock went back', () => {
    expect(describeHolder({ pid: 1, command: 'x', since }, new Date(0))).toBe(
      'pid 1, `x`, since 12:01:03 (0ms ago)',
    );
  });

  it('says what it can where the holder told no time or nothing', () => {
    expect(describeHolder({ pid: 1, command: 'flock x' }, new Date(0))).toBe('pid 1, `flock x`');
    expect(describeHolder(undefined, new Date(0))).toBe('another process');
  });
});

describe('readHolder', () => {
  it('reads what was written by a process that is alive', () => {
    const holder = { pid: process.pid, command: 'reeve edge', runId: 'r', since };
    expect(readHolder(writeText(renderHolder(holder)))).toEqual(holder);
  });

  it.each([
    ['a process that is gone', renderHolder({ pid: 4194999, command: 'reeve edge', since })],
    ['nothing', ''],
    ['a cut text', '{"pid":1,'],
    ['null', 'null'],
    ['another shape', '{"pid":"1"}'],
    ['a long text', `{"pid":1,"command":"${'x'.repeat(5000)}"}`],
  ])('believes no text that names %s', (_, text) => {
    expect(readHolder(writeText(text))).toBeUndefined();
  });
});

describe('parseWait', () => {
  it('takes seconds, also parts of one, and none', () => {
    expect([parseWait(undefined), parseWait('0'), parseWait('30'), parseWait('0.5')]).toEqual([
      0, 0, 30_000, 500,
    ]);
  });

  it.each(['', '-1', 'abc', '1e3', '86401', true])('refuses %j', (value) => {
    expect(() => parseWait(value)).toThrow(/^cannot wait .*: --wait takes seconds, from 0 to 86400$/);
  });
});

function writeText(text: string): string {
  const path = join(makeTempDir(), 'x.lock');
  writeFileSync(path, text);
  return path;
}
