// Flags that several commands share, from text to values. Wrong ones are UsageErrors that show a right one.
import { UsageError } from '../lib/errors.ts';
import { namePattern } from '../lib/ids.ts';
import { parseDuration } from '../lib/time.ts';

/** `PROJECT/SERVICE` in one word. */
export function parseServiceKey(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const [project = '', service = '', ...rest] = String(value).split('/');
  if (rest.length > 0 || !namePattern.test(project) || !namePattern.test(service)) {
    throw new UsageError(`${JSON.stringify(value)} is no service: give PROJECT/SERVICE, as in blog/web`);
  }
  return `${project}/${service}`;
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
