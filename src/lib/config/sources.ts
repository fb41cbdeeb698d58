// Reading the files a configuration consists of: text and mode, as both are judged. At once
// rather than by promises: they are small, local and the first thing every command waits for.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { ConfigError, systemErrorCode } from '../errors.ts';

export type Source = { path: string; text: string; mode: number };

/** Far above any configuration, far below what would hurt. */
const maxSourceBytes = 1024 * 1024;

/** Undefined where there is no such file. Throws ConfigError for what cannot be read. */
export function readSource(path: string): Source | undefined {
  try {
    // Without O_NONBLOCK a FIFO would keep us here until somebody writes to it.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const about = fstatSync(fd);
      if (!about.isFile()) throw new ConfigError(`cannot read ${path}: it is not a regular file`);
      if (about.size > maxSourceBytes) throw new ConfigError(`cannot read ${path}: it is larger than 1 MiB`);
      return describeSource(path, readFileSync(fd), about.mode & 0o777);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return undefined;
    throw new ConfigError(`cannot read ${path}: ${readFailures[code ?? ''] ?? code}`, { cause: error });
  }
}

export function describeSource(path: string, bytes: Uint8Array, mode: number): Source {
  try {
    return { path, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), mode };
  } catch (error) {
    throw new ConfigError(`cannot read ${path}: it is not UTF-8 text`, { cause: error });
  }
}

const readFailures: Record<string, string> = {
  EACCES: 'permission denied: run this as root, or as a user who may read it',
  ENOTDIR: 'a part of its path is not a directory',
};
