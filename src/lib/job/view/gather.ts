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
  const open = await findPlaces(openJobsDir(ctx.paths), openKeys, true);
  const ended = await findPlaces(endedJobsDir(ctx.paths), await listEndedJobs(ctx), false);
  const held = await listHeldLocks(ctx.paths.locksDir, openKeys.map(jobLock));
  const recent = ended.filter(({ changedMs }) => changedMs >= endedSinceMs);
  const seen = new Set(ended.map(({ key }) => key));
  const unreadable: { key: string; message: string }[] = [];
  const read = async (place: Found): Promise<JobFacts | undefined> => {
    try {
      const facts = await readFacts(ctx, place, held.has(jobLock(place.key)));
      // Closed while we were reading.
      return facts.isOpen && facts.claim === undefined && !existsSync(facts.directory) ? undefined : facts;
    } catch (error) {
      unreadable.push({ key: place.key, message: describeError(error) });
      return undefined;
    }
  };
  const openJobs = await mapBounded(
    open.filter(({ key }) => !seen.has(key)),
    parallel,
    read,
  );
  const endedJobs = await mapBounded(
    recent.sort((a, b) => b.changedMs - a.changedMs),
    parallel,
    read,
  );
  const isThere = (facts: JobFacts | undefined): facts is JobFacts => facts !== undefined;
  const claimedAt = ({ claim }: JobFacts): string => claim?.claimedAt ?? '';
  return {
    jobs: [
      ...openJobs.filter(isThere).sort((a, b) => (claimedAt(a) < claimedAt(b) ? -1 : 1)),
      ...endedJobs.filter(isThere),
    ],
    unreadable,
  };
}

/** Throws InputError, which says what was wanted, for an id that no job here has. */
export async function requireJob(ctx: ViewContext, id: string, verb: string): Promise<JobFacts> {
  for (let isSecond = false; ; isSecond = true) {
    const place = await findJob(ctx, id);
    if (place === undefined) {
      throw new InputError(`cannot ${verb} job ${JSON.stringify(id)}: this node knows none of that id`);
    }
    const lock = jobLock(place.key);
    const held = place.isOpen ? await listHeldLocks(ctx.paths.locksDir, [lock]) : new Set();
    const changedMs = await readChangeMs(place.directory);
    // It may have been closed between two reads: then it is with the ended ones.
    if (changedMs === undefined && !isSecond) continue;
    const facts = await readFacts(ctx, { ...place, changedMs: changedMs ?? 0 }, held.has(lock));
    if (isSecond || !place.isOpen || existsSync(place.directory)) return facts;
  }
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

async function readFacts(
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
