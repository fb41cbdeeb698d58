// A dump back into PostgreSQL, by psql inside the container: into a database that nobody knows yet, in one transaction, up to
// the first error.
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { runInContainer } from '../../docker/exec.ts';
import { StepError } from '../../errors.ts';
import type { Argv } from '../../exec/run.ts';
import type { DatabaseRestorer, FoundTarget } from '../engine.ts';
import { tellError } from '../errors.ts';
import { endMarked } from './end.ts';
import {
  askDatabase,
  askServer,
  buildProgram,
  loadOptions,
  type Programs,
  type Question,
  runShort,
  sessionName,
} from './programs.ts';
import {
  copySettingsSql,
  countInSql,
  countObjectsSql,
  createDatabaseSql,
  createLikeSql,
  dataDirectorySql,
  dropDatabaseSql,
  findDatabaseSql,
  leftoversSql,
  renameDatabaseSql,
  rolesSql,
  swapDatabasesSql,
  terminateInSql,
} from './restore-sql.ts';
import { makeRestriction, restrictText } from './restricted.ts';
import { planRoles } from './roles.ts';
import { markerOf, parseRows, restorePrefix } from './sql.ts';
import { isDumpEnd, parseEncoding } from './text.ts';

export function openRestorer(programs: Programs): DatabaseRestorer {
  const { runId } = programs;
  let count = 0;
  return {
    dropLeftovers: () => dropLeftovers(programs),
    isEnd: isDumpEnd,
    findDatabase: (name) => findDatabase(programs, name),
    createDatabase: async (as) => {
      count += 1;
      const name = `${restorePrefix}${runId}-${count}`;
      await createDatabase(programs, name, as);
      return name;
    },
    loadDatabase: (name, chunks) => loadDatabase(programs, name, chunks),
    countRows: (name) => countRows(programs, name),
    dropDatabase: (name) => dropDatabase(programs, name),
    renameDatabase: (from, to, { replaces }) =>
      replaces ? replaceDatabase(programs, from, to) : renameDatabase(programs, from, to),
    restoreRoles: (globals) => restoreRoles(programs, globals),
    findFreeBytes: () => findFreeBytes(programs),
    restrictsText: async () => (await makeRestriction(programs)) !== undefined,
  };
}

/** In the server's words. Statements of ours may take as long as a dump: each row is counted, each file copied. */
async function ask(
  programs: Programs,
  sql: string,
  how: Partial<Question> & { beside?: string } = {},
): Promise<string[]> {
  try {
    return await askServer(programs, sql, { name: sessionName, timeoutMs: programs.limits.dumpMs, ...how });
  } catch (error) {
    throw new StepError(tellError(error), { cause: error });
  }
}

async function askIn(programs: Programs, database: string, sql: string): Promise<string[]> {
  const how = { name: markerOf(programs.runId), timeoutMs: programs.limits.dumpMs };
  try {
    return await askDatabase(programs, sql, { database, ...how });
  } catch (error) {
    throw new StepError(tellError(error), { cause: error });
  }
}

async function dropLeftovers(programs: Programs): Promise<void> {
  for (const line of await ask(programs, leftoversSql)) {
    const [, name = ''] = line.split('|');
    if (name.startsWith(restorePrefix)) await dropDatabase(programs, name);
  }
}

async function findDatabase(programs: Programs, name: string): Promise<FoundTarget | undefined> {
  const [line] = await ask(programs, findDatabaseSql, { variables: { name } });
  if (line === undefined) return undefined;
  const [, isTemplate, isOpen] = line.split('|');
  if (isTemplate === 't') return { isEmpty: false, refusal: 'it is a template' };
  if (isOpen !== 't') return { isEmpty: false, refusal: 'it allows no connections' };
  const [counted = ''] = await askIn(programs, name, countObjectsSql);
  return { isEmpty: counted.split('|')[1] === '0' };
}

async function createDatabase(
  programs: Programs,
  name: string,
  as: Parameters<DatabaseRestorer['createDatabase']>[0],
): Promise<void> {
  if ('like' in as) await ask(programs, createLikeSql, { variables: { name, like: as.like } });
  else
    await ask(programs, createDatabaseSql, {
      variables: { name, encoding: parseEncoding(as.beginning) ?? '' },
    });
}

/** Short steps that are done to their end, also by a run that is told to stop. */
const settled = (): { signal: AbortSignal } => ({ signal: new AbortController().signal });

async function dropDatabase(programs: Programs, name: string): Promise<void> {
  await ask(programs, dropDatabaseSql, { variables: { name }, ...settled() });
}

async function renameDatabase(programs: Programs, from: string, to: string): Promise<void> {
  await ask(programs, renameDatabaseSql, { variables: { from, to }, beside: to, ...settled() });
}

async function countRows(programs: Programs, name: string) {
  const lines = await askIn(programs, name, countInSql);
  return lines.flatMap((line) => parseRows(line) ?? []);
}

/** Without what a row holds in its messages: `terse` leaves out the details. */
const loadArgv: Argv = [
  ...['psql', '--no-psqlrc', '--quiet', '--no-password', '--single-transaction'],
  ...['--set', 'ON_ERROR_STOP=1', '--set', 'VERBOSITY=terse', '--set', 'SHOW_CONTEXT=never'],
  ...['--output', '/dev/null', '--file', '-'],
] as unknown as Argv;

async function loadDatabase(
  programs: Programs,
  database: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { limits, redact, signal } = programs;
  const name = markerOf(programs.runId);
  const source = watchEnd(restrictText(chunks, await makeRestriction(programs)));
  const input = Readable.from(source.chunks, { objectMode: false });
  try {
    await runInContainer(buildProgram(programs, loadArgv, { database, name, options: loadOptions }), {
      ...{ input, redact, signal },
      timeoutMs: limits.dumpMs,
    });
  } catch (error) {
    await endMarked(programs, name);
    if (source.failure !== undefined) throw source.failure;
    throw new StepError(tellError(error), { cause: error });
  } finally {
    input.destroy();
  }
  // psql cannot tell a source that broke off from one that has ended.
  if (source.failure !== undefined) throw source.failure;
  if (!source.hasEnded) throw new StepError('psql has ended before the dump', { code: 'cut' });
}

function watchEnd(chunks: AsyncIterable<Uint8Array>) {
  const watched = { hasEnded: false, failure: undefined as unknown, chunks: read() };
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      yield* chunks;
      watched.hasEnded = true;
    } catch (error) {
      watched.failure = error;
      throw error;
    }
  }
  return watched;
}

const swapTries = 3;
const terminatePauseMs = 200;

/**
 * Whoever is connected is sent away, also during the swap: it begins with a lock that keeps others out, and waits for those who
 * are in.
 */
async function replaceDatabase(programs: Programs, from: string, to: string): Promise<void> {
  await ask(programs, copySettingsSql, { variables: { name: from, like: to }, beside: to });
  const old = `${from}-old`;
  const terminate = (): Promise<string[]> =>
    ask(programs, terminateInSql, { variables: { name: to }, beside: to, ...settled() });
  for (let tried = 1; ; tried++) {
    await terminate();
    const end = new AbortController();
    const terminating = repeat(terminate, end.signal);
    try {
      await ask(programs, swapDatabasesSql, { variables: { from, to, old }, beside: to, ...settled() });
      break;
    } catch (error) {
      if (tried === swapTries || programs.signal.aborted) throw error;
    } finally {
      end.abort();
      await terminating;
    }
  }
  // The restore is done; the next one removes what this cannot.
  await dropDatabase(programs, old).catch(() => {});
}

/** What it throws is told by what it is done for. */
async function repeat(work: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(terminatePauseMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await work().catch(() => {});
  }
}

async function restoreRoles(programs: Programs, globals: string) {
  const existing = (await ask(programs, rolesSql)).map((line) =>
    Buffer.from(line.split('|')[1] ?? '', 'hex').toString(),
  );
  const { statements, made, tablespaces } = planRoles(globals, new Set(existing));
  if (made.length > 0) {
    // Terse: a statement that fails has a password in it.
    const restriction = (await makeRestriction(programs)) ?? '';
    const lines = ['BEGIN;', ...statements, 'COMMIT;', ''];
    await ask(programs, `\\set VERBOSITY terse\n${restriction}${lines.join('\n')}`);
  }
  return { made, tablespaces };
}

async function findFreeBytes(programs: Programs): Promise<number | undefined> {
  const [line = ''] = await ask(programs, dataDirectorySql);
  const [, directory = ''] = line.split('|');
  try {
    const { stdout } = await runShort(programs, ['df', '-P', '-k', '--', directory]);
    const free = Number(stdout.trimEnd().split('\n').at(-1)?.trim().split(/\s+/)[3]);
    return Number.isFinite(free) ? free * 1024 : undefined;
  } catch {
    // An image without the program.
    return undefined;
  }
}
