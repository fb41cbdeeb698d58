// `failures/<unit>.json`: how a unit failed last, and whether somebody has been told. Written by `reeve-failed@`.
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { systemErrorCode } from '../errors.ts';
import type { Log } from '../report/log.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { requireText } from '../state/shape.ts';

export type FailureRecord = {
  unit: string;
  /** The episode's first failure: it lasts until the unit's concern has a good run. */
  firstAt: string;
  lastAt: string;
  /** Failures in this episode. */
  count: number;
  /** systemd's word: `exit-code`, `timeout`, `signal`, `oom-kill`, `start-limit-hit` ... */
  result: string;
  /** An exit status or a signal's name. */
  status: string | null;
  invocationId: string | null;
  lastLines: readonly string[];
  /** This episode has been told of. */
  notified: boolean;
  /** The hook's last try, in this episode or an earlier one. */
  hook: { triedAt: string; error: string | null } | null;
};

type Instruments = { paths: Pick<Paths, 'stateDir'>; now: Date; log: Log };

export async function readFailure(
  { paths, now, log }: Instruments,
  unit: string,
): Promise<FailureRecord | undefined> {
  const read = await readDocument(failurePath(paths, unit), failureDocument, { now, log });
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
}

export async function writeFailure(paths: Pick<Paths, 'stateDir'>, record: FailureRecord): Promise<void> {
  await writeDocument(failurePath(paths, record.unit), failureDocument, record);
}

/** Of all units, by name. A damaged one is told about and left out. */
export async function readFailures({ paths, now, log }: Instruments): Promise<FailureRecord[]> {
  const directory = join(paths.stateDir, 'failures');
  const records: FailureRecord[] = [];
  for (const name of await listNames(directory)) {
    if (!name.endsWith('.json')) continue;
    const read = await readDocument(join(directory, name), failureDocument, { now, log, repair: false });
    if (read.kind === 'ok' || read.kind === 'recovered') records.push(read.value);
  }
  return records;
}

async function listNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  }
}

/** A unit's name may be as long as a file's, escapes and all: what does not fit with our suffixes goes by its sum. */
function failurePath(paths: Pick<Paths, 'stateDir'>, unit: string): string {
  const fits = /^[A-Za-z0-9][A-Za-z0-9:_.@-]{0,199}$/.test(unit);
  const name = fits ? unit : createHash('sha256').update(unit).digest('hex');
  return join(paths.stateDir, 'failures', `${name}.json`);
}

const failureDocument = defineDocument<FailureRecord>({
  version: 1,
  parse: (raw) => {
    const { version: _, ...record } = raw;
    for (const name of ['unit', 'firstAt', 'lastAt', 'result']) requireText(raw, name);
    const { count, lastLines, notified } = record;
    if (!Number.isInteger(count) || !Array.isArray(lastLines) || typeof notified !== 'boolean') {
      throw new TypeError('count, lastLines or notified is wrong');
    }
    return record as FailureRecord;
  },
});
