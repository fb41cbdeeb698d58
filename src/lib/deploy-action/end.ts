// How the deploy script ended, in the words of a result. Pure.
import type { ActionEnd } from '../actions/markers.ts';
import { explainExit } from '../deploy-runner/script.ts';
import type { CommandEnd } from '../runner/run.ts';
import { formatDuration } from '../time.ts';

export type EndTimes = { startedAt: string; now: Date; timeoutMs: number };

export function toActionEnd(end: CommandEnd, { startedAt, now, timeoutMs }: EndTimes): ActionEnd {
  const times = { startedAt, endedAt: now.toISOString() };
  const fail = (reason: string): ActionEnd => ({ outcome: 'failed', ...times, reason });
  switch (end.kind) {
    case 'exited':
      if (end.code === 0) return { outcome: 'succeeded', ...times, exitCode: 0 };
      return { ...fail(explainExit(end.code)), exitCode: end.code };
    case 'signalled':
      return fail(`ended by ${end.signal}`);
    case 'deadline':
      return fail(`timeout: no end within ${formatDuration(timeoutMs)}`);
    case 'cancelled':
      return fail('interrupted: the run was stopped');
    case 'not-started':
      return fail(end.message);
  }
}

/** In an event: enough for a person. */
export const maxTailBytes = 8 * 1024;

/** The last of it, from the beginning of a character on. */
export function renderTail({ bytes }: { bytes: Uint8Array }): string {
  let start = Math.max(0, bytes.length - maxTailBytes);
  const isCut = start > 0;
  while (isCut && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(bytes.subarray(start));
}
