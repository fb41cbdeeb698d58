// How all commands of this node stand, for people: nothing is settled, started or set aside.
import { readdir } from 'node:fs/promises';
import { mapBounded } from '../bounded.ts';
import { systemErrorCode } from '../errors.ts';
import { findBootId } from '../host/boot.ts';
import { externalIdPattern } from '../ids.ts';
import { fileError } from '../state/file-error.ts';
import { type BookContext, readRecord } from './book.ts';
import { commandsDir } from './records.ts';
import { findLoss } from './settle.ts';

export type CommandsSurvey = {
  /** Taken and not started yet. */
  waiting: number;
  /** The oldest first. */
  running: readonly { jobId: string; startedAt: string }[];
  /** Ids of those whose process has gone without a word: whoever asks for one next is told so. */
  lost: readonly string[];
  succeeded: number;
  failed: number;
  /** Keys of those whose record cannot be read. */
  damaged: readonly string[];
};

/** At once: each is one small file. */
const atOnce = 32;

export async function surveyCommands(ctx: BookContext): Promise<CommandsSurvey> {
  const bootId = await findBootId(ctx.paths);
  const running: { jobId: string; startedAt: string }[] = [];
  const [lost, damaged]: [string[], string[]] = [[], []];
  const counts = { waiting: 0, succeeded: 0, failed: 0 };
  await mapBounded(await listKeys(ctx), atOnce, async (key) => {
    const record = await readRecord(ctx, key);
    if (record === undefined) return;
    if (record === 'damaged') return void damaged.push(key);
    const { jobId, state } = record;
    if (findLoss(record, bootId) !== undefined) return void lost.push(jobId);
    switch (state.kind) {
      case 'accepted':
        counts.waiting += 1;
        return;
      case 'running':
        running.push({ jobId, startedAt: state.startedAt });
        return;
      case 'success':
        counts.succeeded += 1;
        return;
      case 'failed':
        counts.failed += 1;
    }
  });
  running.sort((left, right) => Date.parse(left.startedAt) - Date.parse(right.startedAt));
  return { ...counts, running, lost: lost.sort(), damaged: damaged.sort() };
}

async function listKeys({ paths }: BookContext): Promise<string[]> {
  const directory = commandsDir(paths);
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
  return names
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .filter((key) => externalIdPattern.test(key));
}
