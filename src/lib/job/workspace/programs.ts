// Programs that make files for a container to read: whatever our own umask is, theirs leaves reading to all.
import type { Argv } from '../../exec/run.ts';

/** The script is constant: names and paths are its arguments, and no shell reads them. */
export function withOpenUmask(...argv: string[]): Argv {
  return ['sh', '-c', 'umask 022 && exec "$@"', 'sh', ...argv];
}
