// Fetches and unpacks archives that others have made: everything in one is looked at before any of it is unpacked.
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ControlPlaneError } from '../../control-plane/control-plane.ts';
import { CommandError, describeError, InputError, ReeveError, UnavailableError } from '../../errors.ts';
import { type ProgramOptions, runProgram, streamProgram } from '../../exec/run.ts';
import { type ArchiveRules, createMemberCheck, parseMember } from './parse-listing.ts';
import { withOpenUmask } from './programs.ts';

export type Fetching = {
  what: string;
  fetch(): Promise<Readable>;
  file: string;
  maxBytes: number;
  signal: AbortSignal;
  retryMs?: readonly number[];
};

/** Waits before another attempt: a server's bad moment is no reason to give up a job. */
const defaultRetryMs = [500, 2000, 5000] as const;

/** The archive's sha256. Throws InputError for one that is too large. */
export async function fetchArchive(fetching: Fetching): Promise<string> {
  const { signal, retryMs = defaultRetryMs } = fetching;
  for (const waitMs of retryMs) {
    try {
      return await fetchOnce(fetching);
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error;
    }
    const { setTimeout: sleep } = await import('node:timers/promises');
    await sleep(waitMs, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
  }
  return await fetchOnce(fetching);
}

function isPassing(error: unknown): boolean {
  return error instanceof ControlPlaneError ? error.isTransient : error instanceof UnavailableError;
}

async function fetchOnce({ what, fetch, file, maxBytes, signal }: Fetching): Promise<string> {
  const { createHash } = await import('node:crypto');
  const hash = createHash('sha256');
  const source = await fetch();
  let sizeBytes = 0;
  const measure = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw new InputError(`cannot take ${what}: it has more than ${maxBytes} bytes`);
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(source, measure, createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (error) {
    if (error instanceof ReeveError) throw error;
    throw new UnavailableError(`cannot fetch ${what}: ${describeError(error)}`, { cause: error });
  }
  return hash.digest('hex');
}

const tarTimeoutMs = 60 * 60_000;

/** Into a directory that is empty. Throws InputError for an archive that breaks the rules or is none. */
export async function unpackArchive(unpacking: {
  file: string;
  directory: string;
  rules: ArchiveRules;
  signal: AbortSignal;
}): Promise<void> {
  const { file, directory, rules, signal } = unpacking;
  const options = { signal, timeoutMs: tarTimeoutMs, env: { LC_ALL: 'C', TZ: 'UTC' } };
  try {
    await checkMembers(file, rules, options);
    await runProgram(
      withOpenUmask('tar', ...unpackArgs, `--file=${file}`, `--directory=${directory}`),
      options,
    );
  } catch (error) {
    const isDamaged = error instanceof CommandError && error.code === 'status' && !isOurs(error);
    if (!isDamaged) throw error;
    throw new InputError(`cannot unpack ${rules.what}: ${error.lastLines.split('\n').at(-1)}`, {
      cause: error,
      code: 'archive',
    });
  }
}

/** A full or failing disk is not the archive's fault. */
function isOurs({ lastLines }: CommandError): boolean {
  return /No space left|Disk quota|Read-only file system|Input\/output error/.test(lastLines);
}

/** No owners, no special modes or attributes; a member never gets out of the directory through a link. */
const unpackArgs = [
  '--extract',
  '--gzip',
  '--no-same-owner',
  '--no-same-permissions',
  '--no-overwrite-dir',
  '--no-acls',
  '--no-selinux',
  '--no-xattrs',
  '--force-local',
];

async function checkMembers(file: string, rules: ArchiveRules, options: ProgramOptions): Promise<void> {
  const check = createMemberCheck(rules);
  const argv = [
    ...(['tar', '--list', '--verbose', '--gzip', '--numeric-owner', '--full-time'] as const),
    ...['--quoting-style=c', '--force-local', `--file=${file}`],
  ] as const;
  // All of it is ASCII, a line a member.
  let rest = '';
  for await (const chunk of streamProgram(argv, options)) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLineLength) throw new InputError(`cannot take ${rules.what}: a name is too long`);
    for (const line of lines) check(parseMember(line));
  }
}

/** Two paths of the longest that Linux takes, each byte as an octal escape. */
const maxLineLength = 40_000;
