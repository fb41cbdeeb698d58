// `/v1/logs`: the last lines of an instance's log files, which stand in a directory that the control plane knows. Whoever may write
// there must not be able to have another file read: links are not followed, and only files are opened for reading.
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type LogFile, type LogsRequest, limits, readLogName } from '../agenda/instances.ts';
import { parseLogsQuery } from '../agenda/queries.ts';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { waitForAnswer } from '../exec/answering.ts';
import { type Answer, ApiError, type ApiRequest } from '../server/route.ts';
import { fileError } from '../state/file-error.ts';
import type { Gate } from './gate.ts';
import { findHidden } from './hidden.ts';

/** Of all files of one answer: many files have less each. */
const answerBytes = 16 * 1024 * 1024;

type Found = { name: string; service: string };

/** 404 where there are none, or where none are shown to us, which it says. */
export async function handleLogs(request: ApiRequest, gate: Gate): Promise<Answer> {
  const wanted = parseLogsQuery(request.query);
  const { app = '', instance = '' } = request.params;
  return await gate(request.signal, async () => {
    await requireAnswer(wanted.dir, request.signal);
    const found = await findLogs(wanted, app, instance);
    const most = Math.min(limits.logBytes, Math.floor(answerBytes / Math.max(1, found.length)));
    const logs: LogFile[] = [];
    let fault: unknown;
    for (const { name, service } of found) {
      request.signal.throwIfAborted();
      // One that cannot be read takes no other away.
      const lines = await readTail(join(wanted.dir, name), most, wanted.tail).catch((error: unknown) => {
        fault ??= error;
        return undefined;
      });
      if (lines !== undefined) logs.push({ service, file: name, lines });
    }
    if (logs.length === 0) throw fault ?? (await explainNone(wanted.dir, `${app}/${instance}`));
    return { status: 200, json: { app, instance, logs } };
  });
}

const answerMs = 5_000;

/** Throws UnavailableError where the disk does not answer. */
async function requireAnswer(dir: string, signal: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(answerMs);
  await waitForAnswer(dir, AbortSignal.any([signal, late])).catch((error: unknown) => {
    if (signal.aborted || !late.aborted) throw error;
    throw new UnavailableError(`cannot read ${JSON.stringify(dir)}: no answer within ${answerMs / 1000}s`);
  });
}

/** Why there are none, for whoever knows that there are some. */
async function explainNone(dir: string, instance: string): Promise<ApiError> {
  const hidden = await findHiding(dir);
  const why =
    hidden === undefined
      ? await findAbsence(dir)
      : `: reeve-api-commands.service does not see what is below ${hidden}`;
  return new ApiError(404, `no logs found for ${instance} in ${JSON.stringify(dir)}${why}`);
}

const absences: Readonly<Record<string, string>> = {
  ENOENT: ': there is no such directory',
  ENOTDIR: ': it is no directory',
  ENAMETOOLONG: ': its name is too long',
};

/** Empty for a directory, which then has none. */
async function findAbsence(dir: string): Promise<string> {
  const code = await stat(dir).then(
    (about) => (about.isDirectory() ? '' : 'ENOTDIR'),
    (error: unknown) => systemErrorCode(error) ?? '',
  );
  return absences[code] ?? '';
}

async function findHiding(dir: string): Promise<string | undefined> {
  return findHidden(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''), dir);
}

const nowhere: readonly (string | undefined)[] = Object.keys(absences);

async function findLogs(
  { dir, service: wanted }: LogsRequest,
  app: string,
  instance: string,
): Promise<Found[]> {
  const found: Found[] = [];
  try {
    for await (const { name } of await opendir(dir)) {
      const service = readLogName(name, app, instance);
      if (service === undefined) continue;
      // A service has a file for each of its replicas.
      if (wanted === undefined || service === wanted || service.startsWith(`${wanted}__`)) {
        found.push({ name, service });
      }
    }
  } catch (error) {
    // What is hidden is there, and may not be entered.
    if (nowhere.includes(systemErrorCode(error)) || (await findHiding(dir)) !== undefined) return [];
    throw fileError('read', dir, error);
  }
  return found.sort(({ name: left }, { name: right }) => (left < right ? -1 : 1));
}

/** Of one that is gone by now there are none to be missed, and a link is no log. */
const passed: readonly (string | undefined)[] = ['ENOENT', 'ELOOP', 'ENXIO'];

/** Undefined for what is no file, or no longer. Without blocking: nobody may stand at the other end of a pipe. */
async function readTail(path: string, maxBytes: number, tail: number): Promise<string[] | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let file: FileHandle | undefined;
  try {
    file = await open(path, flags);
    const about = await file.stat();
    if (!about.isFile()) return undefined;
    // One more, which says whether a line begins after it.
    const from = Math.max(0, about.size - maxBytes - 1);
    const bytes = await readAll(file, from, about.size - from);
    return toLines(bytes, from > 0).slice(-tail);
  } catch (error) {
    if (passed.includes(systemErrorCode(error))) return undefined;
    throw fileError('read', path, error);
  } finally {
    await file?.close();
  }
}

async function readAll(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let taken = 0;
  while (taken < length) {
    const { bytesRead } = await file.read(bytes, taken, length - taken, from + taken);
    // Made shorter meanwhile.
    if (bytesRead === 0) break;
    taken += bytesRead;
  }
  return bytes.subarray(0, taken);
}

const lineFeed = 10;

/** `isCut`: what stands before the first line feed is the end of a line; it is left out, unless it is all there is. */
function toLines(bytes: Buffer, isCut: boolean): string[] {
  const first = isCut ? bytes.indexOf(lineFeed) + 1 : 0;
  const whole = bytes.subarray(first < bytes.length ? first : 0);
  if (whole.length === 0) return [];
  const text = whole.toString('utf8');
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n').map((line) => line.replace(/\r$/, ''));
}
