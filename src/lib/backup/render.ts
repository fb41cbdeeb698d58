// What a run tells people, programs and history. Pure.
import type { Outcome, OutcomeKind } from '../outcome.ts';
import { foldLines } from '../report/table.ts';
import type { HistoryEvent } from '../state/history.ts';
import { formatDuration } from '../time.ts';
import { formatBytes } from './bytes.ts';
import type { ServiceOutcome } from './dump/back-up-service.ts';
import { stampOf } from './names.ts';
import type { BackupPlan, BackupTurn } from './plan.ts';
import { type DatabaseResult, describeFailures } from './record.ts';
import type { BackupsDocument, DatabaseBackups } from './state.ts';

export type TurnResult = { turn: BackupTurn; outcome: ServiceOutcome };

type Told = {
  plan: BackupPlan;
  results: readonly TurnResult[];
  /** After the run. */
  document: BackupsDocument;
  now: Date;
  isNow: boolean;
};

export function renderBackup(told: Told): Outcome {
  const { plan, results } = told;
  const deferred = [
    ...plan.deferred,
    ...results.flatMap(({ turn: { key }, outcome }) =>
      outcome.kind === 'deferred' ? [{ key, reason: outcome.reason }] : [],
    ),
  ];
  const text = [
    ...results.flatMap((result) => renderTurn(result, told)),
    ...plan.faults.map(({ key, error }) => `${key}: ${error}`),
    ...deferred.map(({ key, reason }) => `${key}: deferred: ${reason}`),
    ...plan.anchored.map(({ key, why }) => `${key}: ${why}`),
  ];
  const outcome = kindOf(told, deferred.length);
  const idle = results.length === 0 && text.length === 0;
  return {
    outcome,
    text: idle ? ['nothing is due', ...renderWaiting(plan)] : text,
    data: {
      services: results.map((result) => describeTurn(result, told.document)),
      deferred: deferred.map(({ key, reason }) => ({ ...splitKey(key), reason })),
      failing: plan.faults.map(({ key, error }) => ({ ...splitKey(key), error })),
      next: plan.waiting.map(({ key, next }) => ({ ...splitKey(key), at: next?.toISOString() ?? null })),
    },
  };
}

function kindOf({ plan, results, isNow }: Told, deferred: number): OutcomeKind {
  const attempts = results.flatMap(({ outcome }) => (outcome.kind === 'attempted' ? [outcome.attempt] : []));
  const failed =
    attempts.some((attempt) => describeFailures(attempt) !== undefined) || plan.faults.length > 0;
  const good = attempts.some(({ databases }) => databases.some(({ kind }) => kind === 'dumped'));
  // What a person has asked for and does not get has failed.
  const missed = isNow && deferred > 0;
  if (failed || missed) return good ? 'partial' : 'failed';
  if (deferred > 0) return 'deferred';
  return attempts.length > 0 ? 'done' : 'nothing-to-do';
}

function renderTurn({ turn: { key, fire }, outcome }: TurnResult, { document, now }: Told): string[] {
  if (outcome.kind !== 'attempted') return [];
  const { databases, error } = outcome.attempt;
  const known = document.services[key]?.databases ?? {};
  return [
    ...databases.map((result) => `${key} ${renderDatabase(result, knownOf(known, result.database), now)}`),
    ...(error === undefined ? [] : [`${key} ${stampOf(fire)}: failed: ${foldLines(error)}`]),
  ];
}

function renderDatabase(result: DatabaseResult, known: DatabaseBackups | undefined, now: Date): string {
  const name = JSON.stringify(result.database);
  if (result.kind === 'failed') {
    return `${name}: failed: ${foldLines(result.error)}; ${describeLastGood(known, now)}`;
  }
  const { sizeBytes, durationMs, tables } = result;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const counts = `${tables.length} tables, ${rows} rows`;
  return `${name}: ${formatBytes(sizeBytes)} in ${formatDuration(durationMs)}, ${counts}, ${known?.level ?? 'readable'}`;
}

/** How old what could be restored is: what matters more than how the last run went. */
function describeLastGood(known: DatabaseBackups | undefined, now: Date): string {
  if (known === undefined || known.lastSuccessAt === null) return 'it has no good backup';
  const ageMs = Math.max(0, now.getTime() - Date.parse(known.lastSuccessAt));
  return `its last good backup is ${formatDuration(ageMs)} old`;
}

function knownOf(
  databases: Readonly<Record<string, DatabaseBackups>>,
  name: string,
): DatabaseBackups | undefined {
  return Object.hasOwn(databases, name) ? databases[name] : undefined;
}

function renderWaiting({ waiting }: BackupPlan): string[] {
  return waiting.map(
    ({ key, next }) => `${key}: ${next === undefined ? 'never' : `next ${next.toISOString()}`}`,
  );
}

function describeTurn({ turn, outcome }: TurnResult, document: BackupsDocument): object {
  const about = { ...splitKey(turn.key), firedAt: turn.fire.toISOString() };
  if (outcome.kind === 'deferred') return { ...about, outcome: 'deferred', reason: outcome.reason };
  if (outcome.kind === 'interrupted') return { ...about, outcome: 'interrupted' };
  const { attempt, skipped } = outcome;
  const known = document.services[turn.key]?.databases ?? {};
  const isGood = describeFailures(attempt) === undefined;
  return {
    ...about,
    outcome: isGood ? 'done' : 'failed',
    ...(attempt.error === undefined ? {} : { error: attempt.error }),
    databases: attempt.databases.map((result) => describeDatabase(result, knownOf(known, result.database))),
    skipped,
  };
}

function describeDatabase(result: DatabaseResult, known: DatabaseBackups | undefined): object {
  const lastSuccessAt = known?.lastSuccessAt ?? null;
  if (result.kind === 'failed') {
    return { name: result.database, outcome: 'failed', error: result.error, lastSuccessAt };
  }
  const { database: name, key, sizeBytes, rawBytes, durationMs, tables } = result;
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const level = known?.level ?? 'readable';
  return {
    name,
    outcome: 'done',
    key,
    sizeBytes,
    rawBytes,
    durationMs,
    tables: tables.length,
    rows,
    level,
    lastSuccessAt,
  };
}

export function toEvents(
  { runId, clock }: { runId: string; clock: { now(): Date } },
  { service: { project, service }, fire }: BackupTurn,
  { attempt }: ServiceOutcome & { kind: 'attempted' },
): HistoryEvent[] {
  const about = {
    at: clock.now().toISOString(),
    run: runId,
    concern: 'backup',
    action: 'dump',
    project,
    service,
  };
  const of = `of ${stampOf(fire)}`;
  const events = attempt.databases.map((result): HistoryEvent => {
    const reason = `database ${JSON.stringify(result.database)} ${of}`;
    return result.kind === 'dumped'
      ? { ...about, reason, outcome: 'done' }
      : { ...about, reason, outcome: 'failed', error: result.error };
  });
  const { error } = attempt;
  return error === undefined
    ? events
    : [...events, { ...about, reason: `the set ${of}`, outcome: 'failed', error }];
}

function splitKey(key: string): { project: string; service: string } {
  const [project = '', service = ''] = key.split('/');
  return { project, service };
}
