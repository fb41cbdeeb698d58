// Another clock for a program alone, by Debian's `faketime`. Times of files stay the kernel's, and so does the clock that nobody sets.
import { globSync } from 'node:fs';

const kept = { FAKETIME_DONT_FAKE_MONOTONIC: '1', NO_FAKE_STAT: '1' };

/** Variables for a program. `clock` is an offset as `+1h`, or the time of UTC at which it stands still: `2026-11-30 12:00:00`. */
export function fakeClock(clock: string): Record<string, string> {
  return { TZ: 'UTC', LD_PRELOAD: findLibrary(), FAKETIME: clock, ...kept };
}

/** The same, where the offset is read from a file at each look, so that it can be set while the program runs. */
export function fakeClockFrom(file: string): Record<string, string> {
  return { LD_PRELOAD: findLibrary(), FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1', ...kept };
}

function findLibrary(): string {
  const [path] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
  if (path === undefined) throw new Error('there is no libfaketime.so.1 (Debian: apt-get install faketime)');
  return path;
}
