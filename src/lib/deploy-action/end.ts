// How the deploy script ended, in the words of a result. Pure.
import type { ActionEnd } from '../actions/markers.ts';
import { explainExit } from '../deploy-runner/script.ts';
import { escapeControls } from '../report/printable.ts';
import type { CommandEnd } from '../runner/run.ts';
import { formatDuration } from '../time.ts';

export type EndTimes = { startedAt: string; now: Date; timeoutMs: number };

export function toActionEnd(end: CommandEnd, { startedAt, now, timeoutMs }: EndTimes): ActionEnd {
  const times = { startedAt, endedAt: now.toISOString() };
  const fail = (reason: string): ActionEnd => ({ outcome: 'failed', ...times, reason });
  const said = findLastLine(renderTail(end.output));
  const failSaying = (reason: string): ActionEnd => fail(said === '' ? reason : `${reason}: ${said}`);
  switch (end.kind) {
    case 'exited':
      if (end.code === 0) return { outcome: 'succeeded', ...times, exitCode: 0 };
      return { ...failSaying(explainExit(end.code)), exitCode: end.code };
    case 'signalled':
      return failSaying(`ended by ${end.signal}`);
    case 'deadline':
      return failSaying(`timeout: no end within ${formatDuration(timeoutMs)}`);
    case 'cancelled':
      return fail('interrupted: the run was stopped');
    case 'not-started':
      return fail(end.message);
  }
}

/** In an event: enough for a person. */
export const maxTailBytes = 8 * 1024;

/** The last of it, from the beginning of a character on. Line ends of a terminal are plain ones here. */
export function renderTail({ bytes }: { bytes: Uint8Array }): string {
  let start = Math.max(0, bytes.length - maxTailBytes);
  const isCut = start > 0;
  while (isCut && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(bytes.subarray(start)).replaceAll(/\r+$/gm, '');
}

export const maxLastLineLength = 200;

/** Where scripts say why. Empty where nothing was said. Of a line that was written over, what stood there in the end. */
function findLastLine(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.replaceAll(colours, '').trim());
  const last = [...escapeControls(lines.findLast((line) => line !== '') ?? '')];
  if (last.length <= maxLastLineLength) return last.join('');
  const end = Math.floor(maxLastLineLength / 3);
  return `${last.slice(0, maxLastLineLength - end - 5).join('')} ... ${last.slice(-end).join('')}`;
}

/** And what else a program tells a terminal. */
const colours = new RegExp(`${String.fromCodePoint(0x1b)}\\[[0-?]*[ -/]*[@-~]`, 'g');
