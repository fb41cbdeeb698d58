// What the server has answered to a claim, kept as the very first thing: from then on the job is ours whatever is killed. It lies
// beside the open jobs, counts as one of them, and goes when the job has its own records or its end is told.
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { isRecord } from '../state/shape.ts';
import { openJobsDir } from './records.ts';

type AnswerContext = Pick<BaseContext, 'paths' | 'clock' | 'runId'>;

/** `payload` is undefined where the file is damaged: nobody knows what it was. */
export type KeptAnswer = { name: string; claimedAt: string; payload: unknown };

let kept = 0;

/** At once and in one piece, before anything else can be killed. Its name. */
export function keepAnswer({ paths, clock, runId }: AnswerContext, payload: unknown): string {
  kept += 1;
  const name = `.answer-${runId}-${kept}.json`;
  const path = join(openJobsDir(paths), name);
  const text = `${JSON.stringify({ claimedAt: clock.now().toISOString(), payload })}\n`;
  try {
    writeDurably(path, text);
    return name;
  } catch (error) {
    dropAnswer({ paths }, name);
    throw fileError('write', path, error);
  }
}

/** Never throws: one that stays is looked at again, and its job is known by then. */
export function dropAnswer({ paths }: Pick<BaseContext, 'paths'>, name: string): void {
  try {
    unlinkSync(join(openJobsDir(paths), name));
  } catch {
    // It is gone, or the next pass sees it.
  }
}

/** Those of claimers that were killed, as only one claims at a time. One that cannot be read stays for another time. */
export function readAnswers({ paths, log }: Pick<BaseContext, 'paths' | 'log'>): KeptAnswer[] {
  return listAnswers(paths).flatMap((name) => {
    const path = join(openJobsDir(paths), name);
    try {
      return [{ name, ...readAnswer(path) }];
    } catch (error) {
      log.warning(describeError(fileError('read', path, error)));
      return [];
    }
  });
}

export function countAnswers({ paths }: Pick<BaseContext, 'paths'>): number {
  return listAnswers(paths).length;
}

function listAnswers(paths: BaseContext['paths']): string[] {
  const directory = openJobsDir(paths);
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.startsWith('.answer-'))
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  }
}

function readAnswer(path: string): Omit<KeptAnswer, 'name'> {
  const text = readFileSync(path, 'utf8');
  try {
    const raw: unknown = JSON.parse(text);
    if (isRecord(raw) && typeof raw['claimedAt'] === 'string') {
      return { claimedAt: raw['claimedAt'], payload: raw['payload'] };
    }
  } catch {
    // Cut by whatever ended its writer.
  }
  return { claimedAt: '', payload: undefined };
}

function writeDurably(path: string, text: string): void {
  let fd: number;
  try {
    fd = openSync(path, 'wx', 0o600);
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
    fd = openSync(path, 'wx', 0o600);
  }
  try {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  syncParent(path);
}

function syncParent(path: string): void {
  const fd = openSync(join(path, '..'), 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
