// How a command has ended, in the words of its record. Pure.
import { errorTexts } from '../agenda/wire.ts';
import type { CommandEnd } from '../runner/run.ts';
import type { EndedState } from './records.ts';

export function toEndedState(
  end: CommandEnd,
  about: { startedAt: string; now: Date; stopReason: string },
): EndedState {
  const { startedAt, now, stopReason } = about;
  const times = { startedAt, endedAt: now.toISOString() };
  const fail = (exitCode: number, error: string): EndedState => ({
    ...{ kind: 'failed', ...times, exitCode, error },
  });
  switch (end.kind) {
    case 'exited':
      return end.code === 0 ? { kind: 'success', ...times } : fail(end.code, errorTexts.exit(end.code));
    case 'signalled':
      return fail(-1, errorTexts.signal(end.signal));
    case 'deadline':
      return fail(-1, errorTexts.deadline);
    case 'cancelled':
      return fail(-1, stopReason);
    case 'not-started':
      return fail(-1, end.message);
  }
}
