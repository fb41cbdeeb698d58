// `history.ndjson`: every action with its reason, one JSON line each, kept for at least 30 days. Many commands append
// at once without a lock, so the file is never rewritten: when it has grown old it is moved aside as a segment, where
// an append through an open descriptor is still found, and segments go when all of them is old.
import { constants } from 'node:fs';
import { open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { systemErrorCode } from '../errors.ts';
import { fileStamp } from '../time.ts';
import { ensureDirectory, syncDirectory } from './directory.ts';
import { fileError } from './file-error.ts';

export type HistoryEvent = {
  /** ISO instant. */
  at: string;
  run: string;
  concern: string;
  action: string;
  project?: string;
  service?: string;
  replica?: number;
  reason: string;
  outcome: HistoryOutcome;
  error?: string;
};

type HistoryOutcome = 'done' | 'failed' | 'deferred' | 'refused' | 'unknown';

export type HistoryFilter = {
  since?: Date;
  project?: string;
  service?: string;
  concern?: string;
  /** A word of the reason, such as a domain. */
  mention?: string;
};

type StatePaths = Pick<Paths, 'stateDir'>;

const dayMs = 24 * 60 * 60_000;
/** A segment goes when its last event is older than this. */
const keptMs = 30 * dayMs;
/** The current file becomes a segment when its first event is older than this. */
const segmentMs = 31 * dayMs;
const segmentPattern = /^history-[0-9TZ-]+\.ndjson$/;
/** An error text of a program may be long; a line has to stay a line. */
const maxErrorLength = 2000;

const trimmed = new Set<string>();

/** Appends in one write, so that concurrent runs do not mix within a line. Durable when it returns. */
export async function appendHistory(paths: StatePaths, events: readonly HistoryEvent[]): Promise<void> {
  const last = events.at(-1);
  if (last === undefined) return;
  const path = historyPath(paths);
  try {
    await ensureDirectory(paths.stateDir);
    if (!trimmed.has(path)) {
      trimmed.add(path);
      await trimHistory(paths, new Date(last.at));
    }
    await appendLines(path, events.map(renderEvent).join(''));
  } catch (error) {
    throw fileError('append to', path, error);
  }
}

/** Events in the order in which they were written, oldest first. A line that was cut or mixed up is left out. */
export async function readHistory(paths: StatePaths, filter: HistoryFilter = {}): Promise<HistoryEvent[]> {
  const files = [...(await listSegments(paths)), historyPath(paths)];
  const events: HistoryEvent[] = [];
  for (const file of files) {
    for (const line of (await readTextIfPresent(file)).split('\n')) {
      const event = parseEvent(line);
      if (event !== undefined && matchesFilter(event, filter)) events.push(event);
    }
  }
  return events;
}

/** Costs one read of the file's first bytes unless there is something to do. `appendHistory` calls it once a process. */
export async function trimHistory(paths: StatePaths, now: Date): Promise<void> {
  const firstAt = await readFirstInstant(historyPath(paths));
  if (firstAt === undefined || now.getTime() - firstAt < segmentMs) return;
  await ignoreMissing(rename(historyPath(paths), join(paths.stateDir, `history-${fileStamp(now)}.ndjson`)));
  for (const segment of await listSegments(paths)) {
    const about = await ignoreMissing(stat(segment));
    if (about !== undefined && now.getTime() - about.mtimeMs > keptMs) await ignoreMissing(unlink(segment));
  }
  await syncDirectory(paths.stateDir);
}

function historyPath(paths: StatePaths): string {
  return join(paths.stateDir, 'history.ndjson');
}

async function appendLines(path: string, lines: string): Promise<void> {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  const handle = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const { size } = await handle.stat();
    // After a write that a full disk or a kill has cut, a line break keeps our first line whole.
    const text = size > 0 && !(await endsWithLineBreak(handle, size)) ? `\n${lines}` : lines;
    const bytes = Buffer.from(text);
    const { bytesWritten } = await handle.write(bytes, 0, bytes.length, null);
    if (bytesWritten !== bytes.length)
      throw new Error(`only ${bytesWritten} of ${bytes.length} bytes were written`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function endsWithLineBreak(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<boolean> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] === 0x0a;
}

function renderEvent(event: HistoryEvent): string {
  const { error } = event;
  const bounded = error === undefined ? event : { ...event, error: error.slice(0, maxErrorLength) };
  return `${JSON.stringify(bounded)}\n`;
}

const wantedTexts = ['at', 'run', 'concern', 'action', 'reason', 'outcome'] as const;

function parseEvent(line: string): HistoryEvent | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const raw = JSON.parse(line) as Partial<HistoryEvent>;
    const isWhole = wantedTexts.every((key) => typeof raw[key] === 'string');
    const isErrorText = raw.error === undefined || typeof raw.error === 'string';
    return isWhole && isErrorText ? (raw as HistoryEvent) : undefined;
  } catch {
    return undefined;
  }
}

function matchesFilter(event: HistoryEvent, filter: HistoryFilter): boolean {
  if (filter.since !== undefined && !(Date.parse(event.at) >= filter.since.getTime())) return false;
  if (filter.concern !== undefined && event.concern !== filter.concern) return false;
  if (filter.mention !== undefined && !event.reason.split(/[\s,:]+/).includes(filter.mention)) return false;
  if (filter.project !== undefined && event.project !== filter.project) return false;
  return filter.service === undefined || event.service === filter.service;
}

async function readFirstInstant(path: string): Promise<number | undefined> {
  const handle = await ignoreMissing(open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (handle === undefined) return undefined;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
    const at = /"at":"([^"]+)"/.exec(buffer.toString('utf8', 0, bytesRead))?.[1];
    const instant = at === undefined ? Number.NaN : Date.parse(at);
    // A file whose start cannot be read is aged by its own clock, so that damage does not keep it for ever.
    return Number.isNaN(instant) && bytesRead > 0 ? (await handle.stat()).birthtimeMs : instant || undefined;
  } finally {
    await handle.close();
  }
}

/** Oldest first: their stamps sort by time. */
async function listSegments(paths: StatePaths): Promise<string[]> {
  const names = await ignoreMissing(readdir(paths.stateDir)).catch((error: unknown) => {
    throw fileError('read', paths.stateDir, error);
  });
  return (names ?? [])
    .filter((name) => segmentPattern.test(name))
    .sort()
    .map((name) => join(paths.stateDir, name));
}

async function readTextIfPresent(path: string): Promise<string> {
  try {
    return (await ignoreMissing(readFile(path, 'utf8'))) ?? '';
  } catch (error) {
    throw fileError('read', path, error);
  }
}

async function ignoreMissing<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
