// One fetched dump into a server, and a look at what came of it.
import { StepError } from '../../errors.ts';
import { formatBytes } from '../bytes.ts';
import type { DatabaseRestorer } from '../engine.ts';
import { readBeginning, readText } from '../fetch.ts';
import type { TableRows } from '../manifest.ts';
import { compareRows, sumRows } from './compare.ts';

export type Loaded = {
  /** Of the database that the dump is in now. */
  name: string;
  tables: number;
  rows: number;
  durationMs: number;
};

/** Indexes and the log come on top of the text. */
const growth = 2;
const reservedBytes = 64 * 1024 * 1024;

/** Throws StepError (`ENOSPC`) where the dump's text, once it is tables and indexes, is likely not to fit. */
export async function requireServerSpace(restorer: DatabaseRestorer, rawBytes: number): Promise<void> {
  const free = await restorer.findFreeBytes();
  const wanted = rawBytes * growth + reservedBytes;
  if (free === undefined || free >= wanted) return;
  throw new StepError(
    `ENOSPC: the server has ${formatBytes(free)} free, and about ${formatBytes(wanted)} are needed`,
    { code: 'ENOSPC' },
  );
}

/**
 * Into a new database, as `like` is where that is given. Throws StepError where the dump does not go in whole, or has not what was
 * dumped (`differs`), and leaves nothing then. `tables`: of the manifest; undefined where there is none.
 */
export async function loadDump(
  restorer: DatabaseRestorer,
  path: string,
  { tables, like }: { tables: readonly TableRows[] | undefined; like?: string },
): Promise<Loaded> {
  const startedAt = performance.now();
  const name = await restorer.createDatabase(
    like === undefined ? { beginning: await readBeginning(path) } : { like },
  );
  try {
    await restorer.loadDatabase(name, readText(path));
    const restored = await restorer.countRows(name);
    if (tables !== undefined) requireAlike(compareRows(tables, restored));
    const durationMs = Math.round(performance.now() - startedAt);
    return { name, tables: restored.length, rows: sumRows(restored), durationMs };
  } catch (error) {
    // The next run removes what this cannot.
    await restorer.dropDatabase(name).catch(() => {});
    throw error;
  }
}

const shownDifferences = 20;

function requireAlike(differences: readonly string[]): void {
  if (differences.length === 0) return;
  const more = differences.length - shownDifferences;
  const shown = differences.slice(0, shownDifferences).join('; ');
  throw new StepError(
    `it was restored and is not what was dumped: ${shown}${more > 0 ? `; and ${more} more` : ''}`,
    { code: 'differs' },
  );
}
