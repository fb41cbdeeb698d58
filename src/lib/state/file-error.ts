// Errors of the file system in our words and classes, with Node's code kept for whoever decides by it.
import { ConfigError, ReeveError, StepError, systemErrorCode } from '../errors.ts';

/** What trying again does not cure: the machine has to be mended. */
const settledCodes = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG']);

/** `cannot write "/var/lib/reeve/ports.json": ENOSPC: no space left on device`. */
export function fileError(verb: string, path: string, error: unknown): ReeveError {
  if (error instanceof ReeveError) return error;
  const code = systemErrorCode(error) ?? 'file';
  const message = `cannot ${verb} ${JSON.stringify(path)}: ${describeCause(error)}`;
  if (settledCodes.has(code)) return new ConfigError(message, { cause: error, code });
  return new StepError(message, { cause: error, code });
}

/** A system error without the call and the paths that Node appends to it. */
export function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return /^E[A-Z0-9]+: [^,]+(?=,)/.exec(error.message)?.[0] ?? error.message;
}
