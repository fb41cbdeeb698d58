// Archives of the server: onto the disk as they come, and unpacked by tar only once all of their members have been found harmless.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../../abort.ts';
import {
  CommandError,
  describeError,
  InputError,
  ReeveError,
  StepError,
  UnavailableError,
} from '../../errors.ts';
import { type Argv, type ProgramOptions, runProgram, streamProgram } from '../../exec/run.ts';
import { createMemberCheck, type MemberLimits, parseMember } from './members.ts';
import { withOpenUmask } from './programs.ts';

/** Of the archive as it is fetched. */
export type FetchLimits = MemberLimits & { archiveBytes: number };

export type Archive = { what: string; file: string; limits: FetchLimits; signal: AbortSignal };

/** Waits before another attempt: a server's bad moment is no reason to give up a job. */
const retryMs = [500, 2000, 5000];
const tarMs = 60 * 60_000;
/** Two paths of the longest that Linux takes, each byte as an octal escape. */
const maxLineLength = 40_000;

/** Its sha256. Throws InputError for an archive that is too large, UnavailableError where it did not come whole. */
export async function fetchArchive(archive: Archive, fetch: () => Promise<Readable>): Promise<string> {
  const { signal } = archive;
  for (const waitMs of retryMs) {
    try {
      return await fetchOnce(archive, fetch);
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error;
    }
    await sleep(waitMs, undefined, { signal }).catch(() => {});
  }
  return await fetchOnce(archive, fetch);
}

/** What came in parts, and an answer that is the server's own trouble. */
function isPassing(error: unknown): boolean {
  return error instanceof UnavailableError && !('isTransient' in error && error.isTransient === false);
}

async function fetchOnce(
  { what, file, limits, signal }: Archive,
  fetch: () => Promise<Readable>,
): Promise<string> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const measure = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      sizeBytes += chunk.length;
      if (sizeBytes > limits.archiveBytes)
        throw new InputError(`it has more than ${limits.archiveBytes} bytes`);
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    const source = await waitUntil(signal, fetch);
    await pipeline(source, measure, createWriteStream(file, { mode: 0o600 }), { signal });
    return hash.digest('hex');
  } catch (error) {
    throw explain(what, error, signal);
  }
}

/** Into a directory that is empty. Modes are as they stand there but for the special ones; owners are not. */
export async function unpackArchive(archive: Archive, directory: string): Promise<void> {
  const { what, file, signal } = archive;
  const options = { signal, timeoutMs: tarMs, env: { LC_ALL: 'C', TZ: 'UTC' } };
  try {
    await checkMembers(archive, options);
    const places = ['--force-local', '--file', file, '--directory', directory];
    await runProgram(withOpenUmask('tar', '--extract', '--gzip', ...unpackArgs, ...places), options);
  } catch (error) {
    throw explain(what, error, signal);
  }
}

const unpackArgs = [
  ...['--no-same-owner', '--no-same-permissions', '--no-acls', '--no-selinux', '--no-xattrs'],
  ...['--delay-directory-restore', '--no-overwrite-dir', '--warning=no-timestamp'],
];

async function checkMembers({ file, limits }: Archive, options: ProgramOptions): Promise<void> {
  const check = createMemberCheck(limits);
  const argv: Argv = [
    ...(['tar', '--list', '--verbose', '--gzip', '--numeric-owner', '--full-time'] as const),
    // As they stand there: without it the program would show what it makes of them.
    ...['--absolute-names', '--quoting-style=c', '--force-local', '--file', file],
  ];
  // All of it is ASCII, a line a member. It ends with the first that is refused.
  let rest = '';
  for await (const chunk of streamProgram(argv, options)) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLineLength) throw new InputError('a name is too long');
    for (const line of lines) check(parseMember(line));
  }
}

function explain(what: string, error: unknown, signal: AbortSignal): ReeveError {
  if (signal.aborted)
    return new UnavailableError(`cannot take ${what}: interrupted`, { code: 'interrupted' });
  const message = `cannot take ${what}: ${describeError(error)}`;
  if (error instanceof CommandError) {
    if (error.code !== 'status') return error;
    const fault = findOurFault(error);
    if (fault !== undefined) return new StepError(`cannot take ${what}: ${fault}`, { cause: error });
    const words = error.lastLines.split('\n').find((line) => line.trim() !== '' && !line.startsWith('sh:'));
    return new InputError(`cannot take ${what}: ${words?.trim() ?? 'it cannot be read'}`, { cause: error });
  }
  if (error instanceof InputError) return new InputError(message, { cause: error });
  if (error instanceof ReeveError) return error;
  return new UnavailableError(message, { cause: error });
}

/** A full or failing disk is not the archive's fault. */
function findOurFault({ lastLines }: CommandError): string | undefined {
  return /^.*(?:No space left|Disk quota|Read-only file system|Input\/output error).*$/m.exec(lastLines)?.[0];
}
