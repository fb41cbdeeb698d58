// Flags that several commands share, from text to values. Wrong ones are UsageErrors that show a right one.
import { UsageError } from '../lib/errors.ts';
import { namePattern } from '../lib/ids.ts';
import { parseDuration } from '../lib/time.ts';

/** `PROJECT/SERVICE` in one word, where it was given. */
export function parseServiceKey(value: unknown): string | undefined {
  return value === undefined ? undefined : requireServiceKey(String(value));
}

/** `PROJECT/SERVICE` as a person types it. Throws UsageError. */
export function requireServiceKey(text: string): string {
  const [project = '', service = '', ...more] = text.split('/');
  if (more.length === 0 && namePattern.test(project) && namePattern.test(service)) return text;
  throw new UsageError(`"${text}" names no service: write PROJECT/SERVICE`);
}

export function requireProject(text: string): string {
  if (namePattern.test(text)) return text;
  throw new UsageError(`"${text}" is no project name`);
}

/** `--since 2h` or an ISO instant, as an instant. */
export function parseSince(value: unknown, now: Date): Date | undefined {
  if (value === undefined) return undefined;
  const text = String(value);
  const agoMs = parseDuration(text);
  if (agoMs !== undefined) return new Date(now.getTime() - agoMs);
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) {
    throw new UsageError(
      `${JSON.stringify(text)} is no time: give a duration (2h) or an instant (2026-06-04T03:00:00Z)`,
    );
  }
  return at;
}

/** `--idle SECONDS` in milliseconds, where it was given. */
export function parseIdle(raw: unknown): number | undefined {
  if (typeof raw !== 'string') return undefined;
  const seconds = /^\d{1,6}(\.\d{1,3})?$/.test(raw) ? Number(raw) : 0;
  if (seconds > 0) return seconds * 1000;
  throw new UsageError(`cannot use --idle ${JSON.stringify(raw)}: it must be a number of seconds`);
}
