// Reading and writing the records of jobs. Whoever changes an open job's records holds `job@ID`; making one and counting the
// open ones happens under `slots`, so that no more are open than there are slots.
import { link, lstat, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, InputError, systemErrorCode } from '../errors.ts';
import { externalIdPattern, newRunId } from '../ids.ts';
import { previousPath, writeFileAtomic } from '../state/atomic-file.ts';
import { ensureDirectory, syncDirectory } from '../state/directory.ts';
import {
  type DocumentDefinition,
  type ReadOptions,
  type ReadResult,
  readDocument,
  writeDocument,
} from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { fileStamp } from '../time.ts';
import { cancelDocument, claimDocument, completionDocument, progressDocument } from './documents.ts';
import { keepJobId } from './job-id.ts';
import {
  endedJobsDir,
  type JobCancel,
  type JobClaim,
  type JobCompletion,
  type JobProgress,
  jobKey,
  openJobsDir,
} from './records.ts';

type BookContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

/** A job's directory; `key` is its name. */
export type JobPlace = { key: string; directory: string; isOpen: boolean };

export type JobRecords = JobPlace & {
  /** Undefined where it is damaged, of which there is no second source. */
  claim: JobClaim | undefined;
  progress: JobProgress | undefined;
  completion: JobCompletion | undefined;
};

/** Keys of open jobs, sorted; those being made are not among them. */
export async function listOpenJobs({ paths }: Pick<BaseContext, 'paths'>): Promise<string[]> {
  return await listKeys(openJobsDir(paths));
}

export async function listEndedJobs({ paths }: Pick<BaseContext, 'paths'>): Promise<string[]> {
  return await listKeys(endedJobsDir(paths));
}

/** By key or by the server's id; undefined where neither an open nor an ended job has it. */
export async function findJob(
  { paths }: Pick<BaseContext, 'paths'>,
  id: string,
): Promise<JobPlace | undefined> {
  const key = jobKey(id);
  for (const [directory, isOpen] of [
    [openJobsDir(paths), true],
    [endedJobsDir(paths), false],
  ] as const) {
    // One name is looked up, as there may be very many ended jobs.
    const place = { key, directory: join(directory, key), isOpen };
    if (await isDirectory(place.directory)) return place;
  }
  return undefined;
}

/**
 * Makes the job with its claim, as a whole or not at all. False where it is there already, open or ended. Throws InputError where
 * the claim is larger than what can be read again. Assumes `slots`.
 */
export async function openJob(ctx: BookContext, claim: JobClaim): Promise<boolean> {
  const key = jobKey(claim.jobId);
  if ((await findJob(ctx, claim.jobId)) !== undefined) return false;
  const parent = openJobsDir(ctx.paths);
  const staged = join(parent, `.new-${key}`);
  await ensureDirectory(parent);
  await rm(staged, { recursive: true, force: true });
  try {
    await mkdir(staged, { mode: 0o700 });
    await keepJobId(staged, claim.jobId);
    await writeDocument(join(staged, 'claim.json'), claimDocument, claim);
    await rename(staged, join(parent, key));
  } catch (error) {
    await rm(staged, { recursive: true, force: true }).catch(() => {});
    throw fileError('open job', join(parent, key), error);
  }
  await syncDirectory(parent);
  return true;
}

/** Moves the job to the ended ones and so gives its slot back. */
export async function closeJob({ paths }: Pick<BaseContext, 'paths'>, key: string): Promise<void> {
  const [from, to] = [openJobsDir(paths), endedJobsDir(paths)];
  await ensureDirectory(to);
  try {
    await rename(join(from, key), join(to, key)).catch(async (error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(systemErrorCode(error) ?? '')) throw error;
      await closePair(join(from, key), join(to, key));
    });
  } catch (error) {
    throw fileError('close job', join(from, key), error);
  }
  await syncDirectory(to);
  await syncDirectory(from);
}

/** It has ended before: the records that tell how it was settled stay. */
async function closePair(open: string, ended: string): Promise<void> {
  if (await isSettled(ended)) {
    await rm(open, { recursive: true, force: true });
    return;
  }
  await rm(ended, { recursive: true, force: true });
  await rename(open, ended);
}

async function isSettled(directory: string): Promise<boolean> {
  try {
    const raw = JSON.parse(await readFile(join(directory, 'completion.json'), 'utf8'));
    return completionDocument.parse(raw).settled !== undefined;
  } catch {
    return false;
  }
}

/** Undefined where it has been closed since it was listed. */
export async function readOpenJob(ctx: BookContext, key: string): Promise<JobRecords | undefined> {
  const records = await readJob(ctx, openPlace(ctx, key));
  // Asked afterwards: what is missing was not there, or has been moved while it was read.
  return (await isThere(records)) ? records : undefined;
}

export function openPlace({ paths }: Pick<BaseContext, 'paths'>, key: string): JobPlace {
  return { key, directory: join(openJobsDir(paths), key), isOpen: true };
}

async function isThere({ directory }: JobPlace): Promise<boolean> {
  try {
    await stat(directory);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw fileError('read', directory, error);
  }
}

/** What is damaged is set aside with one warning: the job goes on from what else is known of it. */
export async function readJob(ctx: BookContext, place: JobPlace, repair = true): Promise<JobRecords> {
  const options = { now: ctx.clock.now(), log: ctx.log, repair: repair && place.isOpen };
  const read = async <T extends object>(name: string, definition: DocumentDefinition<T>) =>
    await readRecord(join(place.directory, name), definition, options);
  const [claim, progress, completion] = await Promise.all([
    read('claim.json', claimDocument),
    read('progress.json', progressDocument),
    read('completion.json', completionDocument),
  ]);
  return {
    ...place,
    claim: toValue(claim),
    progress: place.isOpen ? await trustProgress(place, progress, options.now) : toValue(progress),
    completion: toValue(completion),
  };
}

/** One of a newer reeve is of as little use as a damaged one. */
async function readRecord<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
  options: ReadOptions,
): Promise<ReadResult<T>> {
  try {
    return await readDocument(path, definition, options);
  } catch (error) {
    if (!(error instanceof InputError) || options.repair === false) throw error;
    const setAside = `${path}.corrupt-${fileStamp(options.now)}`;
    for (const [from, to] of [
      [path, setAside],
      [previousPath(path), `${setAside}.previous`],
    ] as const) {
      await rename(from, to).catch((failure: unknown) => {
        if (systemErrorCode(failure) !== 'ENOENT') throw fileError('set aside', from, failure);
      });
    }
    const reason = describeError(error);
    options.log.warning(`record of a job set aside: ${reason}`, { setAside });
    return { kind: 'lost', reason, setAside };
  }
}

function toValue<T>(result: ReadResult<T>): T | undefined {
  return result.kind === 'ok' || result.kind === 'recovered' ? result.value : undefined;
}

/** The record that is lost may have said that the container was started: it is not to be made again. */
async function trustProgress(
  { directory }: JobPlace,
  result: ReadResult<JobProgress>,
  now: Date,
): Promise<JobProgress | undefined> {
  if (result.kind === 'lost' || (result.kind === 'missing' && (await wasSetAside(directory)))) {
    const logs = { nextChunk: 0, sentBytes: 0, closed: false };
    return { phase: 'starting', since: now.toISOString(), logs, steps: [] };
  }
  const progress = toValue(result);
  if (result.kind !== 'recovered' || progress === undefined) return progress;
  const isBefore = progress.phase === 'preparing' || progress.phase === 'creating';
  return isBefore ? { ...progress, phase: 'starting' } : progress;
}

/** By another process, which has told of it. */
async function wasSetAside(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => []);
  return names.some((name) => name.startsWith('progress.json.corrupt-'));
}

export async function writeProgress({ directory }: JobPlace, progress: JobProgress): Promise<void> {
  await writeDocument(join(directory, 'progress.json'), progressDocument, progress);
}

export async function writeCompletion({ directory }: JobPlace, completion: JobCompletion): Promise<void> {
  await writeDocument(join(directory, 'completion.json'), completionDocument, completion);
}

/**
 * By whoever asks for the end of a job: the one record that its runner does not write. The first reason stays. `gone`: the job
 * has been closed meanwhile; its directory must not come back, as it would be a slot that nobody has.
 */
export async function writeCancel(
  { directory }: JobPlace,
  cancel: JobCancel,
): Promise<'written' | 'known' | 'gone'> {
  const path = join(directory, 'cancel.json');
  const name = `.cancel-${process.pid}-${newRunId(new Date(cancel.at))}-${basename(directory)}`;
  const staged = join(dirname(directory), name);
  await writeFileAtomic(staged, `${JSON.stringify({ version: 1, ...cancel })}\n`, { keepPrevious: false });
  try {
    await link(staged, path).catch(async (error: unknown) => {
      // One that is damaged is nobody's reason.
      if (systemErrorCode(error) !== 'EEXIST' || (await isCancelWhole(path))) throw error;
      await rename(staged, path);
    });
    await syncDirectory(directory);
    return 'written';
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST') return 'known';
    if (code === 'ENOENT') return 'gone';
    throw fileError('write', path, error);
  } finally {
    await rm(staged, { force: true });
  }
}

async function isCancelWhole(path: string): Promise<boolean> {
  try {
    cancelDocument.parse(JSON.parse(await readFile(path, 'utf8')));
    return true;
  } catch {
    return false;
  }
}

/** One that cannot be read, as a newer reeve may have written it, is nobody's reason: it keeps no job from going on. */
export async function readCancel(ctx: BookContext, { directory }: JobPlace): Promise<JobCancel | undefined> {
  const options = { now: ctx.clock.now(), log: ctx.log, repair: false };
  try {
    const read = await readDocument(join(directory, 'cancel.json'), cancelDocument, options);
    return read.kind === 'ok' ? read.value : undefined;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    ctx.log.warning(describeError(error));
    return undefined;
  }
}

/** For a job whose claim is lost, of which its container tells the ids. Assumes the job's lock. */
export async function restoreClaim({ directory }: JobPlace, claim: JobClaim): Promise<void> {
  await writeDocument(join(directory, 'claim.json'), claimDocument, claim);
}

async function isDirectory(path: string): Promise<boolean> {
  const about = await lstat(path).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', path, error);
  });
  return about?.isDirectory() === true;
}

async function listKeys(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory() && externalIdPattern.test(entry.name))
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  }
}
