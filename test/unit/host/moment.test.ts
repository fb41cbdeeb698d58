import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findBootId, requireBootId } from '../../../src/lib/host/boot.ts';
import { elapsedMs, type Moment, readMoment, upSinceMs } from '../../../src/lib/host/moment.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

const hourMs = 3_600_000;

describe('a moment', () => {
  it('is by the clock that is asked, and by how long this machine is up', async () => {
    const clock = { now: () => new Date(5) };
    const ctx = { clock, paths: { runDir: makeTempDir() } };
    const first = await readMoment(ctx);
    const second = await readMoment(ctx);
    expect(first).toEqual({
      atMs: 5,
      boot: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), uptimeMs: expect.any(Number) },
    });
    expect(second.boot?.uptimeMs).toBeGreaterThanOrEqual(first.boot?.uptimeMs ?? Number.NaN);
  });

  it('is of the boot that a mark names, which a sandbox sees as well, and counts from its first process', async () => {
    const runDir = makeTempDir();
    const read = () => readMoment({ clock: systemClock, paths: { runDir } });
    const { boot } = await read();
    expect(boot?.id).toBe(await requireBootId({ runDir }));
    const sinceFirst = spawnSync('ps', ['-o', 'etimes=', '-p', '1'], { encoding: 'utf8' }).stdout;
    const after = (await read()).boot;
    // It tells whole seconds.
    expect(Number(sinceFirst) * 1000).toBeGreaterThan((boot?.uptimeMs ?? Number.NaN) - 2_000);
    expect(Number(sinceFirst) * 1000).toBeLessThan((after?.uptimeMs ?? Number.NaN) + 2_000);
  });

  it('is of no boot where none can be told', async () => {
    const read = async (runDir: string, readBoot = requireBootId as typeof findBootId) =>
      (await readMoment({ clock: systemClock, paths: { runDir } }, readBoot)).boot;
    expect(await read('/dev/null/run')).toBe(undefined);
    const runDir = join(makeTempDir(), 'run');
    expect([await read(runDir, findBootId), existsSync(runDir)]).toEqual([undefined, false]);
  });
});

describe('the time since a moment', () => {
  const since: Moment = { atMs: 10 * hourMs, boot: { id: 'a', uptimeMs: 5000 } };
  const at = (atMs: number, id: string, uptimeMs: number): Moment => ({ atMs, boot: { id, uptimeMs } });

  it.each<[string, Moment, number]>([
    ['goes by what nobody sets', at(10 * hourMs + 7000, 'a', 12_000), 7000],
    ['ignores a clock that was put forward', at(11 * hourMs, 'a', 6000), 1000],
    ['ignores a clock that was put back', at(0, 'a', 6000), 1000],
    ['goes by the wall clock after a boot', at(11 * hourMs, 'b', 6000), hourMs],
    ['is not below 0 after one with the clock put back', at(0, 'b', 6000), 0],
    ['goes by the wall clock in a container that was started anew', at(11 * hourMs, 'a', 4000), hourMs],
    ['goes by the wall clock where no other is known', { atMs: 11 * hourMs }, hourMs],
  ])('%s', (_, now, elapsed) => {
    expect(elapsedMs(since, now)).toBe(elapsed);
  });

  it.each<[string, Moment, number]>([
    ['all of it in one boot', at(11 * hourMs, 'a', 12_000), 7000],
    ['since a boot alone, whatever the clock says then', at(99 * hourMs, 'b', 6000), 6000],
    ['since a container was started anew', at(11 * hourMs, 'a', 4000), 4000],
    ['by the wall clock where no boot is known', { atMs: 11 * hourMs }, hourMs],
  ])('that this machine was up for: %s', (_, now, elapsed) => {
    expect(upSinceMs(since, now)).toBe(elapsed);
  });
});
