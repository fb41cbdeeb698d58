// Flags of the subcommands of `backup`. Wrong ones are UsageErrors that show a right one.
import { parseStamp } from '../lib/backup/names.ts';
import { UsageError } from '../lib/errors.ts';

/** A set's stamp, where one was given. */
export function parseSetFlag(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = String(value);
  if (parseStamp(text) !== undefined) return text;
  throw new UsageError(
    `${JSON.stringify(text)} names no set: give its stamp, as 2026-06-04T03-00-00Z (\`reeve backup list\`)`,
  );
}
