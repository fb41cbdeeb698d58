// One set, object by object: read to its end, and restored where that is asked for. What cannot be read now is no broken dump, and
// where no server could be had nothing is said of the dump either.
import { rm } from 'node:fs/promises';
import type { DesiredService } from '../../cluster/wire.ts';
import { describeError, StepError } from '../../errors.ts';
import { type DumpDirectory, requireSpace } from '../dump/temp.ts';
import type { EvidenceLevel } from '../evidence.ts';
import { BrokenError, checkObject, fetchObject, readGlobals } from '../fetch.ts';
import type { Dump } from '../inventory.ts';
import type { DumpRecord, Manifest } from '../manifest.ts';
import type { BackupPlace } from '../place.ts';
import { type Loaded, loadDump, requireServerSpace } from '../restore/load.ts';
import { type Scratch, type ScratchPlace, withScratch } from './scratch.ts';

export type VerifySession = ScratchPlace & {
  directory: DumpDirectory;
  /** What is to be done beyond reading. */
  restores: boolean;
  /** When all of the run has to be over, in milliseconds since the epoch. */
  endsAt: number;
  /** Tells what takes time now, and for how long it may, in milliseconds. */
  tell(doing: string, forMs: number): Promise<void>;
};

export type Finding =
  | { kind: 'found'; level: ProvenLevel; error?: string; restored?: Omit<Loaded, 'name'>; untried?: string }
  /** It could not be looked at. */
  | { kind: 'unknown'; error: string };

type ProvenLevel = Exclude<EvidenceLevel, 'uploaded'>;

export type SetFindings = {
  globals?: Finding;
  databases: readonly { database: string; finding: Finding }[];
  notes: readonly string[];
};

export type SetToVerify = {
  service: DesiredService;
  place: BackupPlace;
  manifest: Manifest;
  /** Those of the manifest that retention has left, as the store has them. */
  dumps: readonly Dump[];
  /** Of the container that the service has now, or of its definition. */
  env: readonly string[];
};

/** Throws only where the run is told to stop. */
export async function verifySet(session: VerifySession, set: SetToVerify): Promise<SetFindings> {
  if (!session.restores) return await lookAtAll(session, set, undefined);
  const { ctx, limits } = session;
  await session.tell('starting a scratch server', limits.dumpMs);
  let tried: SetFindings | undefined;
  try {
    await withScratch(session, set, async (scratch) => {
      tried = await lookAtAll(session, set, scratch);
    });
  } catch (error) {
    requireTime(ctx.signal);
    if (tried === undefined) return await lookAtAll(session, set, { untried: describeError(error) });
  }
  return tried ?? (await lookAtAll(session, set, undefined));
}

/** Where a dump is restored; why it cannot be; undefined where it is not to be. */
type Where = Scratch | { untried: string } | undefined;

async function lookAtAll(session: VerifySession, set: SetToVerify, where: Where): Promise<SetFindings> {
  const globals = await lookAtGlobals(session, set, where);
  const databases: { database: string; finding: Finding }[] = [];
  for (const record of set.manifest.databases) {
    const dump = set.dumps.find(({ key }) => key === record.key);
    if (dump === undefined) continue;
    requireTime(session.ctx.signal);
    const finding = await lookAtDump(session, { set, record, dump, where });
    databases.push({ database: record.database, finding });
  }
  const notes = isScratch(where) ? where.notes : [];
  return { ...(globals === undefined ? {} : { globals }), databases, notes };
}

async function lookAtGlobals(
  session: VerifySession,
  { place: { store }, manifest: { globals } }: SetToVerify,
  where: Where,
): Promise<Finding | undefined> {
  if (globals === undefined) return undefined;
  await session.tell('roles and tablespaces', session.limits.dumpMs);
  return await withFile(session, globals.sizeBytes, where, async (path) => {
    if (path === undefined || !isScratch(where)) {
      await checkObject(store, globals.key, globals);
      return readable(where);
    }
    await fetchObject(store, globals.key, { path, expected: globals });
    const text = await readGlobals(path);
    return await tryRestore(session, async () => {
      await where.server.restorer.restoreRoles(text);
      return { kind: 'found', level: 'restored' };
    });
  });
}

async function lookAtDump(
  session: VerifySession,
  { set, record, dump, where }: { set: SetToVerify; record: DumpRecord; dump: Dump; where: Where },
): Promise<Finding> {
  if (Date.now() >= session.endsAt) return { kind: 'unknown', error: 'this run has no time left for it' };
  const { store } = set.place;
  await session.tell(`database ${JSON.stringify(record.database)}`, session.limits.dumpMs);
  return await withFile(session, record.sizeBytes, where, async (path) => {
    if (path === undefined || !isScratch(where)) {
      await checkObject(store, record.key, record);
      return readable(where, dump.level);
    }
    const { rawBytes } = await fetchObject(store, record.key, { path, expected: record });
    const { restorer } = where.server;
    try {
      await requireServerSpace(restorer, rawBytes);
    } catch (error) {
      return readable({ untried: describeError(error) }, dump.level);
    }
    return await tryRestore(session, async () => {
      const { name, ...restored } = await loadDump(restorer, path, { tables: record.tables });
      // One at a time, so that the room of the largest is enough.
      await restorer.dropDatabase(name);
      return { kind: 'found', level: 'restored', restored };
    });
  });
}

function isScratch(where: Where): where is Scratch {
  return where !== undefined && 'server' in where;
}

/** What was restored once does not become worse by being read. */
function readable(where: Where, before?: EvidenceLevel): Finding {
  const level = before === 'restored' ? 'restored' : 'readable';
  return where !== undefined && 'untried' in where
    ? { kind: 'found', level, untried: where.untried }
    : { kind: 'found', level };
}

async function tryRestore(session: VerifySession, work: () => Promise<Finding>): Promise<Finding> {
  try {
    return await work();
  } catch (error) {
    requireTime(session.ctx.signal);
    return { kind: 'found', level: 'readable', error: describeError(error) };
  }
}

/** With a new file's path where it is to be restored and there is room for it; the file is removed. */
async function withFile(
  { ctx, directory }: VerifySession,
  sizeBytes: number,
  where: Where,
  look: (path: string | undefined) => Promise<Finding>,
): Promise<Finding> {
  const path = directory.next();
  try {
    if (!isScratch(where)) return await look(undefined);
    const lack = await requireSpace(directory, sizeBytes).then(() => undefined, describeError);
    if (lack === undefined) return await look(path);
    const finding = await look(undefined);
    return finding.kind === 'found' ? { ...finding, untried: lack } : finding;
  } catch (error) {
    requireTime(ctx.signal);
    if (error instanceof BrokenError) return { kind: 'found', level: 'broken', error: error.message };
    return { kind: 'unknown', error: describeError(error) };
  } finally {
    await rm(path, { force: true });
  }
}

/** Throws StepError once the run is told to stop. */
export function requireTime(signal: AbortSignal): void {
  if (signal.aborted) throw new StepError('interrupted', { code: 'interrupted' });
}
