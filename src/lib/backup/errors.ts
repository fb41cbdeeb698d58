// What a backup can fail with beside what its parts throw.
import { CommandError, describeError, StepError } from '../errors.ts';

/** Something of a dump may still run in the container or the server, and hold locks there. The next run ends it. */
export class OrphanError extends StepError {
  constructor(cause: string) {
    super(`what is left of a dump in the container could not be ended (orphan-possible): ${cause}`, {
      code: 'orphan-possible',
    });
  }
}

/** A program's own words say more than how it was called. */
export function tellError(error: unknown): string {
  if (!(error instanceof CommandError) || error.code !== 'status') return describeError(error);
  // A docker client without a home warns of its configuration first.
  const lines = error.lastLines.split('\n').filter((line) => line.trim() !== '' && !/^warning/i.test(line));
  const at = lines.findIndex((line) => /error|fatal/i.test(line));
  if (at === -1) return lines.at(-1) ?? `its program has ended with status ${error.status}`;
  const [first = '', second = ''] = lines.slice(at);
  return /detail|error|fatal/i.test(second) ? `${first} ${second}` : first;
}
