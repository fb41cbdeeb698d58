// The jobs of this node as their records tell them, without holding anybody up. Read-only.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapBounded } from '../../bounded.ts';
import type { Context } from '../../context.ts';
import { describeError, InputError } from '../../errors.ts';
import {
  findJob,
  type JobPlace,
  type JobRecords,
  listEndedJobs,
  listOpenJobs,
  readCancel,
  readJob,
} from '../../jobs/book.ts';
import { endedJobsDir, type JobCancel, openJobsDir } from '../../jobs/records.ts';
import { listHeldLocks } from '../../lock/list-locks.ts';
import { jobLock } from '../../lock/names.ts';

/** What is known of a job. */
export type JobFacts = JobRecords & {
  cancel: JobCancel | undefined;
  /** A process has its lock. */
  isHeld: boolean;
  /** When its directory was last changed; of an ended job, about when it ended. */
  changedAt: string;
  /** Records that are there and cannot be read as such. */
  damaged: readonly RecordName[];
};

export type RecordName = 'claim' | 'progress' | 'completion' | 'cancel';

export type JobListing = {
  jobs: readonly JobFacts[];
  unreadable: readonly { key: string; message: string }[];
};

type ViewContext = Pick<Context, 'paths' | 'clock' | 'log'>;

const parallel = 16;

/** Open jobs, the oldest first, then ended ones, the newest first. Those that cannot be read do not hide the others. */
export async function readJobs(
  ctx: ViewContext,
  { endedSinceMs }: { endedSinceMs: number },
): Promise<JobListing> {
  const openKeys = await listOpenJobs(ctx);
  const places = await findPlaces(openJobsDir(ctx.paths), openKeys, true);
  const endedKeys = new Set(await listEndedJobs(ctx));
  // In this order what is closed meanwhile may be in both lists, and is never in none.
  const open = places.filter(({ key }) => !endedKeys.has(key));
  const ended = await findPlaces(endedJobsDir(ctx.paths), [...endedKeys], false);
  const held = await listHeldLocks(ctx.paths.locksDir, openKeys.map(jobLock));
  const recent = ended.filter(({ changedMs }) => changedMs >= endedSinceMs);
  const unreadable: { key: string; message: string }[] = [];
  const read = async (place: Found): Promise<JobFacts[]> => {
    try {
      return [await readFacts(ctx, place, held.has(jobLock(place.key)))];
    } catch (error) {
      unreadable.push({ key: place.key, message: describeError(error) });
      return [];
    }
  };
  const jobs = await mapBounded([...open, ...recent.sort(byChange)], parallel, read);
  return { jobs: sortJobs(jobs.flat()), unreadable };
}

function byChange(a: Found, b: Found): number {
  return b.changedMs - a.changedMs;
}

function sortJobs(jobs: readonly JobFacts[]): JobFacts[] {
  const claimedAt = ({ claim }: JobFacts): string => claim?.claimedAt ?? '';
  const open = jobs.filter(({ isOpen }) => isOpen);
  return [
    ...open.sort((a, b) => (claimedAt(a) < claimedAt(b) ? -1 : 1)),
    ...jobs.filter(({ isOpen }) => !isOpen),
  ];
}

/** Of an error about an id that no job here has. */
export const unknownJob = 'unknown-job';

/** Throws InputError, which says what was wanted, for an id that no job here has. */
export async function requireJob(ctx: ViewContext, id: string, verb: string): Promise<JobFacts> {
  const place = await findJob(ctx, id);
  if (place === undefined) {
    throw new InputError(`cannot ${verb} job ${JSON.stringify(id)}: this node knows none of that id`, {
      code: unknownJob,
    });
  }
  const lock = jobLock(place.key);
  const held = place.isOpen ? await listHeldLocks(ctx.paths.locksDir, [lock]) : new Set();
  const changedMs = (await readChangeMs(place.directory)) ?? ctx.clock.now().getTime();
  return await readFacts(ctx, { ...place, changedMs }, held.has(lock));
}

type Found = JobPlace & { changedMs: number };

async function findPlaces(parent: string, keys: readonly string[], isOpen: boolean): Promise<Found[]> {
  const places = await mapBounded(keys, parallel, async (key): Promise<Found[]> => {
    const directory = join(parent, key);
    const changedMs = await readChangeMs(directory);
    return changedMs === undefined ? [] : [{ key, directory, isOpen, changedMs }];
  });
  return places.flat();
}

async function readChangeMs(directory: string): Promise<number | undefined> {
  return (await stat(directory).catch(() => undefined))?.mtimeMs;
}

/** What has been closed while it was read is read again where it is now. */
async function readFacts(ctx: ViewContext, found: Found, isHeld: boolean): Promise<JobFacts> {
  const facts = await readFactsOnce(ctx, found, isHeld);
  if (!found.isOpen || existsSync(found.directory)) return facts;
  const directory = join(endedJobsDir(ctx.paths), found.key);
  return await readFactsOnce(ctx, { ...found, directory, isOpen: false }, false);
}

async function readFactsOnce(
  ctx: ViewContext,
  { changedMs, ...place }: Found,
  isHeld: boolean,
): Promise<JobFacts> {
  const records = await readJob(ctx, place, false);
  const cancel = await readCancel(ctx, place);
  const found = { claim: records.claim, progress: records.progress, completion: records.completion, cancel };
  const damaged = (Object.keys(found) as RecordName[]).filter(
    (name) =>
      found[name] === undefined && (name === 'claim' || existsSync(join(place.directory, `${name}.json`))),
  );
  return { ...records, cancel, isHeld, damaged, changedAt: new Date(changedMs).toISOString() };
}
