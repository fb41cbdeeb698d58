// Archives of the server: onto the disk as they come, looked through on the way, and unpacked by tar only once all of their
// members have been found harmless.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { BaseContext } from '../../context.ts';
import { describeError, InputError, ReeveError, UnavailableError } from '../../errors.ts';
import { runProgram } from '../../exec/run.ts';
import { type MemberLimits, scanMembers } from './members.ts';

export type Fetched = { sha256: string; members: number };

/** Of the archive as it is fetched. */
type FetchLimits = MemberLimits & { archiveBytes: number };

const tarMs = 30 * 60_000;

/** Throws InputError for an archive that is not taken, UnavailableError where it did not come whole. */
export async function fetchArchive(
  source: Readable,
  file: string,
  about: { what: string; limits: FetchLimits; signal: AbortSignal },
): Promise<Fetched> {
  const { what, limits, signal } = about;
  const scan = scanMembers(limits);
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const gunzip = createGunzip();
  const scanned = pipeline(
    gunzip,
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        try {
          scan.push(chunk);
          done();
        } catch (error) {
          done(error as Error);
        }
      },
    }),
  );
  scanned.catch(() => {});
  const copy = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      sizeBytes += chunk.length;
      if (sizeBytes > limits.archiveBytes) {
        done(new InputError(`it is larger than ${limits.archiveBytes} bytes`));
        return;
      }
      hash.update(chunk);
      // A gunzip that has failed takes nothing any more; what it failed of is what counts.
      if (gunzip.destroyed) {
        scanned.then(() => done(null, chunk), done);
        return;
      }
      gunzip.write(chunk, (error) => {
        if (error) scanned.then(() => done(error), done);
        else done(null, chunk);
      });
    },
    flush: (done) => {
      gunzip.end();
      scanned.then(() => done(), done);
    },
  });
  try {
    await pipeline(source, copy, createWriteStream(file, { mode: 0o600 }), { signal });
    return { sha256: hash.digest('hex'), members: scan.end().members };
  } catch (error) {
    gunzip.destroy();
    throw explain(what, error, signal);
  }
}

function explain(what: string, error: unknown, signal: AbortSignal): ReeveError {
  const message = `cannot take ${what}: ${describeError(error)}`;
  if (signal.aborted) return new UnavailableError(`cannot take ${what}: interrupted`, { code: 'interrupted' });
  if (error instanceof InputError) return new InputError(message, { cause: error });
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' && code.startsWith('Z_')) return new InputError(message, { cause: error });
  if (error instanceof ReeveError) return error;
  return new UnavailableError(message, { cause: error });
}

/** Modes are as they stand there, owners are not: whose they were on another machine says nothing here. */
export async function unpackArchive(
  { signal }: Pick<BaseContext, 'signal'>,
  file: string,
  directory: string,
): Promise<void> {
  const argv = [
    'tar',
    ...['--extract', '--gzip', '--file', file, '--directory', directory],
    ...['--no-same-owner', '--same-permissions', '--no-acls', '--no-selinux', '--no-xattrs'],
    ...['--delay-directory-restore', '--no-overwrite-dir', '--force-local', '--warning=no-timestamp'],
  ] as const;
  await runProgram(argv as unknown as [string, ...string[]], { signal, timeoutMs: tarMs, env: { LC_ALL: 'C' } });
}
