// Reading and writing the records of commands. A record is made by a link, which only one of many can do; from then on whoever
// changes it holds `command@ID`, until it has ended. There are no previous copies: an older state would be run again.
import { link, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, InputError, systemErrorCode } from '../errors.ts';
import { newRunId } from '../ids.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { syncDirectory } from '../state/directory.ts';
import { type DocumentDefinition, readDocument, renderStateDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { cancelDocument, recordDocument } from './documents.ts';
import {
  type CommandRecord,
  cancelPath,
  commandKey,
  commandsDir,
  outputPath,
  recordPath,
} from './records.ts';

export type BookContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

/** `damaged`: there is one, and nobody knows what it says. */
export type ReadRecord = CommandRecord | 'damaged' | undefined;

export async function readRecord(ctx: BookContext, key: string): Promise<ReadRecord> {
  const read = await readOne(ctx, recordPath(ctx.paths, key), recordDocument);
  return read === undefined || read === 'damaged' || commandKey(read.jobId) === key ? read : 'damaged';
}

/** Whether this very command was deleted: then there is none, whatever its record says. */
export async function isCancelled(
  ctx: BookContext,
  key: string,
  { generation }: CommandRecord,
): Promise<boolean> {
  return (await readOne(ctx, cancelPath(ctx.paths, key, generation), cancelDocument)) !== undefined;
}

async function readOne<T extends object>(
  { clock, log }: BookContext,
  path: string,
  definition: DocumentDefinition<T>,
): Promise<T | 'damaged' | undefined> {
  try {
    const read = await readDocument(path, definition, { now: clock.now(), log, repair: false });
    if (read.kind === 'missing') return undefined;
    return read.kind === 'ok' ? read.value : 'damaged';
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    log.warning(describeError(error));
    return 'damaged';
  }
}

/** Makes it, or does nothing where there is one: `known`. Of many at once one makes it. */
export async function makeRecord(
  { paths }: Pick<BaseContext, 'paths'>,
  record: CommandRecord,
): Promise<'made' | 'known'> {
  const directory = commandsDir(paths);
  const key = commandKey(record.jobId);
  const staged = join(directory, `.new-${process.pid}-${newRunId(new Date(record.acceptedAt))}-${key}`);
  const path = recordPath(paths, key);
  await writeFileAtomic(staged, renderStateDocument(recordDocument, record));
  try {
    await link(staged, path);
    await syncDirectory(directory);
    return 'made';
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return 'known';
    throw fileError('write', path, error);
  } finally {
    await rm(staged, { force: true });
  }
}

/** Assumes the command's lock. */
export async function writeRecord(
  { paths }: Pick<BaseContext, 'paths'>,
  record: CommandRecord,
): Promise<void> {
  const path = recordPath(paths, commandKey(record.jobId));
  await writeFileAtomic(path, renderStateDocument(recordDocument, record));
}

export async function writeCancel(
  { paths, clock }: Pick<BaseContext, 'paths' | 'clock'>,
  key: string,
  { generation }: CommandRecord,
): Promise<void> {
  const cancel = { generation, at: clock.now().toISOString() };
  await writeFileAtomic(cancelPath(paths, key, generation), renderStateDocument(cancelDocument, cancel));
}

/** Before the record says that the command has ended: whoever reads that finds all of it. */
export async function writeOutput(
  { paths }: Pick<BaseContext, 'paths'>,
  key: string,
  text: string,
): Promise<void> {
  await writeFileAtomic(outputPath(paths, key), text);
}

/** Empty where there is none, which is no reason to keep the rest back. */
export async function readOutput({ paths, log }: BookContext, key: string): Promise<string> {
  try {
    return await readFile(outputPath(paths, key), 'utf8');
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') log.warning(describeError(error));
    return '';
  }
}

/** Assumes that nobody runs it. `record`: as it was read. */
export async function removeCommand(
  { paths }: Pick<BaseContext, 'paths'>,
  key: string,
  record: ReadRecord,
): Promise<void> {
  await removeFiles({ paths }, key, record);
  await syncDirectory(commandsDir(paths));
}

/** The record first: without it the rest means nothing, and is swept away. After a power cut it may all be there again. */
export async function removeFiles(
  { paths }: Pick<BaseContext, 'paths'>,
  key: string,
  record: ReadRecord,
): Promise<void> {
  const notes =
    record === undefined || record === 'damaged' ? [] : [cancelPath(paths, key, record.generation)];
  for (const path of [recordPath(paths, key), outputPath(paths, key), ...notes]) {
    try {
      await rm(path, { force: true });
    } catch (error) {
      throw fileError('remove', path, error);
    }
  }
}

/** When a file was last written; undefined where it is gone. */
export async function readFileTime(
  { paths }: Pick<BaseContext, 'paths'>,
  name: string,
): Promise<number | undefined> {
  const about = await stat(join(commandsDir(paths), name)).catch(() => undefined);
  return about?.mtimeMs;
}
