// What retention tells people, programs and history. Pure.
import type { Outcome, OutcomeKind } from '../../outcome.ts';
import { foldLines } from '../../report/table.ts';
import type { HistoryEvent } from '../../state/history.ts';
import { formatBytes } from '../bytes.ts';
import type { RemovalResult } from './apply.ts';
import type { DatabaseRetention, Decision } from './policy.ts';
import type { ServicePrune } from './run.ts';

type Told = { isDryRun: boolean };

export function renderPrune(prunes: readonly ServicePrune[], told: Told): Outcome {
  const results = prunes.flatMap((pruned) => pruned.results);
  const isFailed = [...prunes, ...results].some(({ error }) => error !== undefined);
  const isAny = results.some(({ error }) => error === undefined);
  const text = prunes.flatMap((pruned) => renderService(pruned, told));
  return {
    outcome: kindOf({ isFailed, isAny }, told),
    text: text.length === 0 ? ['there are no backups here'] : text,
    data: { dryRun: told.isDryRun, services: prunes.map(describeService) },
  };
}

function kindOf({ isFailed, isAny }: { isFailed: boolean; isAny: boolean }, { isDryRun }: Told): OutcomeKind {
  if (isFailed) return isAny && !isDryRun ? 'partial' : 'failed';
  if (!isAny) return 'nothing-to-do';
  return isDryRun ? 'pending' : 'done';
}

function renderService(pruned: ServicePrune, told: Told): string[] {
  const { key, databases, results, unrecognised, error } = pruned;
  const ends = new Map(results.flatMap((end) => (end.kind === 'dump' ? [[end.decision.dump.key, end]] : [])));
  return [
    ...(error === undefined ? [] : [`${key}: nothing is removed: ${foldLines(error)}`]),
    ...databases.flatMap(({ database, standstill, decisions }) => {
      const name = `${key} ${JSON.stringify(database)}`;
      return [
        ...decisions.toReversed().map((decision) => `${name} ${renderDecision(decision, ends, told)}`),
        ...(standstill === undefined ? [] : [`${name}: nothing is removed: ${standstill}`]),
      ];
    }),
    ...results.flatMap((end) =>
      end.kind === 'set' ? [`${key} set ${renderEnd(end, `: ${end.reason}`, told)}`] : [],
    ),
    ...(unrecognised.length === 0 ? [] : [`${key}: ${unrecognised.length} unrecognised keys are left alone`]),
  ];
}

function renderDecision(
  { dump, isKept, reasons }: Decision,
  ends: ReadonlyMap<string, RemovalResult>,
  told: Told,
): string {
  const detail = ` (${formatBytes(dump.sizeBytes)}): ${reasons.join(', ')}`;
  if (isKept) return `${dump.stamp}: kept${detail}`;
  const end = ends.get(dump.key);
  return end === undefined ? `${dump.stamp}: not reached${detail}` : renderEnd(end, detail, told);
}

function renderEnd({ stamp, error }: RemovalResult, detail: string, { isDryRun }: Told): string {
  if (error !== undefined) return `${stamp}: cannot be removed: ${foldLines(error)}`;
  return `${stamp}: ${isDryRun ? 'would be removed' : 'removed'}${detail}`;
}

function describeService({ key, databases, results, unrecognised, error }: ServicePrune): object {
  const [project = '', service = ''] = key.split('/');
  const errors = new Map(
    results.flatMap((end) => (end.kind === 'dump' ? [[end.decision.dump.key, end.error]] : [])),
  );
  return {
    ...{ project, service },
    databases: databases.map((retention) => describeDatabase(retention, errors)),
    sets: results.flatMap((end) =>
      end.kind === 'set' ? [{ stamp: end.stamp, reason: end.reason, error: end.error ?? null }] : [],
    ),
    unrecognised: unrecognised.length,
    error: error ?? null,
  };
}

function describeDatabase(
  { database, standstill, decisions }: DatabaseRetention,
  errors: ReadonlyMap<string, string | undefined>,
): object {
  return {
    name: database,
    standstill: standstill ?? null,
    dumps: decisions.toReversed().map(({ dump, isKept, reasons }) => ({
      ...{ key: dump.key, firedAt: dump.at.toISOString(), sizeBytes: dump.sizeBytes, level: dump.level },
      ...{ action: isKept ? 'keep' : 'remove', reasons, error: errors.get(dump.key) ?? null },
    })),
  };
}

export function toPruneEvents(
  { runId, clock }: { runId: string; clock: { now(): Date } },
  { project, service }: { project: string; service: string },
  results: readonly RemovalResult[],
): HistoryEvent[] {
  const at = clock.now().toISOString();
  return results.map((end): HistoryEvent => {
    const isDump = end.kind === 'dump';
    const what = isDump
      ? `database ${JSON.stringify(end.decision.dump.database)} of ${end.stamp}: ${end.decision.reasons.join(', ')}`
      : `the set of ${end.stamp}: ${end.reason}`;
    return {
      ...{ at, run: runId, concern: 'backup', action: isDump ? 'removeDump' : 'removeSet', project, service },
      ...{ reason: what, outcome: end.error === undefined ? 'done' : 'failed' },
      ...(end.error === undefined ? {} : { error: end.error }),
    };
  });
}
