// `runs/<concern>.json`: what each concern's last run was, for status, doctor and the heartbeat's question whether
// reconcile is alive. Written at start, at steps that take time, and at the end; by ExecStopPost= when a run was killed.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { InternalError, systemErrorCode } from '../errors.ts';
import type { OutcomeKind } from '../outcome.ts';
import type { Log } from '../report/log.ts';
import { defineDocument, readDocument, writeDocument } from './document.ts';
import { fileError } from './file-error.ts';

export type RunStep = { name: string; startedAt: string; deadlineAt: string };

export type RunRecord = {
  concern: string;
  runId: string;
  pid: number;
  startedAt: string;
  endedAt: string | null;
  outcome: RunOutcome | null;
  exitCode: number | null;
  durationMs: number | null;
  error?: string;
  /** The step under way: alive as long as its deadline has not passed. */
  step?: RunStep;
  /** When any run of this concern last ended, which the start of a new one must not erase. */
  lastEndedAt: string | null;
  /** When one last ended with exit code 0 or 2. */
  lastGoodAt: string | null;
};

/** `killed`: the process was ended from outside, told by its unit. */
export type RunOutcome = OutcomeKind | 'killed';

type StatePaths = Pick<Paths, 'stateDir'>;
type Instruments = { paths: StatePaths; now: Date; log: Log };

export const concernPattern = /^[a-z][a-z0-9-]{0,39}(@[A-Za-z0-9_-]{1,64})?$/;

/** Records that a run has begun. What the file said about earlier runs' ends is carried over. */
export async function startRun(
  { paths, now, log }: Instruments,
  run: { concern: string; runId: string; pid: number; step?: RunStep },
): Promise<RunRecord> {
  const before = await readDocument(runPath(paths, run.concern), runDocument, { now, log });
  const earlier = before.kind === 'ok' || before.kind === 'recovered' ? before.value : undefined;
  const record: RunRecord = {
    ...run,
    startedAt: now.toISOString(),
    endedAt: null,
    outcome: null,
    exitCode: null,
    durationMs: null,
    lastEndedAt: earlier?.lastEndedAt ?? null,
    lastGoodAt: earlier?.lastGoodAt ?? null,
  };
  await writeDocument(runPath(paths, run.concern), runDocument, record);
  return record;
}

/** Records the step that is about to take time; undefined when it is over. */
export async function recordStep(
  paths: StatePaths,
  record: RunRecord,
  step: RunStep | undefined,
): Promise<RunRecord> {
  const { step: _, ...rest } = record;
  const next: RunRecord = step === undefined ? rest : { ...rest, step };
  await writeDocument(runPath(paths, record.concern), runDocument, next);
  return next;
}

export async function endRun(
  paths: StatePaths,
  record: RunRecord,
  end: { now: Date; outcome: RunOutcome; exitCode: number; error?: string },
): Promise<RunRecord> {
  const { step: _, error: __, ...rest } = record;
  const endedAt = end.now.toISOString();
  const next: RunRecord = {
    ...rest,
    endedAt,
    outcome: end.outcome,
    exitCode: end.exitCode,
    // A clock that was set back meanwhile makes no run of negative length.
    durationMs: Math.max(0, end.now.getTime() - Date.parse(record.startedAt)),
    ...(end.error === undefined ? {} : { error: end.error.slice(0, 2000) }),
    lastEndedAt: endedAt,
    lastGoodAt: end.exitCode === 0 || end.exitCode === 2 ? endedAt : record.lastGoodAt,
  };
  await writeDocument(runPath(paths, record.concern), runDocument, next);
  return next;
}

/**
 * Closes the record of a run that was ended from outside. `lastEndedAt` stays: being killed is no end by itself, and a
 * concern that is killed over and over must not look alive.
 */
export async function closeKilledRun(
  paths: StatePaths,
  record: RunRecord,
  end: { now: Date; exitCode: number; error: string },
): Promise<RunRecord> {
  const { step: _, ...rest } = record;
  const next: RunRecord = {
    ...rest,
    endedAt: end.now.toISOString(),
    outcome: 'killed',
    exitCode: end.exitCode,
    durationMs: Math.max(0, end.now.getTime() - Date.parse(record.startedAt)),
    error: record.step === undefined ? end.error : `${end.error}, during "${record.step.name}"`,
  };
  await writeDocument(runPath(paths, record.concern), runDocument, next);
  return next;
}

/** The concern's last run, undefined where there was none or its record cannot be used. Changes nothing. */
export async function readRun(
  { paths, now, log }: Instruments,
  concern: string,
): Promise<RunRecord | undefined> {
  const read = await readDocument(runPath(paths, concern), runDocument, { now, log, repair: false });
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
}

/** All concerns' last runs, sorted by concern. */
export async function readRuns(instruments: Instruments): Promise<RunRecord[]> {
  const records: RunRecord[] = [];
  for (const concern of await listConcerns(instruments.paths)) {
    const record = await readRun(instruments, concern);
    if (record !== undefined) records.push(record);
  }
  return records;
}

async function listConcerns(paths: StatePaths): Promise<string[]> {
  const directory = join(paths.stateDir, 'runs');
  try {
    const names = await readdir(directory);
    const concerns = names.map((name) => /^(.+)\.json$/.exec(name)?.[1]);
    return concerns.filter((name) => name !== undefined && concernPattern.test(name)).sort() as string[];
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  }
}

function runPath(paths: StatePaths, concern: string): string {
  if (!concernPattern.test(concern)) throw new InternalError(`not a concern: ${JSON.stringify(concern)}`);
  return join(paths.stateDir, 'runs', `${concern}.json`);
}

const runDocument = defineDocument<RunRecord>({
  version: 1,
  parse: (raw) => {
    const { version: _, ...record } = raw;
    const wrong = Object.entries(fieldChecks).find(([name, accepts]) => !accepts(record[name]));
    if (wrong !== undefined) throw new Error(`its ${wrong[0]} is wrong`);
    return record as RunRecord;
  },
});

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const orNull =
  (accepts: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === null || accepts(value);

const fieldChecks: Record<keyof RunRecord, (value: unknown) => boolean> = {
  concern: isText,
  runId: isText,
  pid: isCount,
  startedAt: isText,
  endedAt: orNull(isText),
  outcome: orNull(isText),
  exitCode: orNull(isCount),
  durationMs: orNull(isCount),
  error: (value) => value === undefined || isText(value),
  step: (value) => value === undefined || isStep(value),
  lastEndedAt: orNull(isText),
  lastGoodAt: orNull(isText),
};

function isStep(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const step = value as Partial<Record<keyof RunStep, unknown>>;
  return isText(step.name) && isText(step.startedAt) && isText(step.deadlineAt);
}
