// What a look at backups tells people, programs and history. Pure.
import type { Outcome, OutcomeKind } from '../../outcome.ts';
import { foldLines } from '../../report/table.ts';
import type { HistoryEvent } from '../../state/history.ts';
import { formatDuration } from '../../time.ts';
import type { Finding, SetFindings } from './set.ts';

export type VerifiedService = {
  project: string;
  service: string;
  /** Undefined where it has no set, or none could be looked for. */
  stamp?: string;
  findings?: SetFindings;
  /** What failed for all of it. */
  error?: string;
};

export function renderVerify(services: readonly VerifiedService[]): Outcome {
  const failed = services.filter(isFailed).length;
  const looked = services.filter(({ findings }) => findings !== undefined).length;
  const text = services.flatMap(renderService);
  return {
    outcome: kindOf({ failed, looked, all: services.length }),
    text: text.length === 0 ? ['no service has a backup'] : text,
    data: { services: services.map(describeService) },
  };
}

function kindOf({ failed, looked, all }: { failed: number; looked: number; all: number }): OutcomeKind {
  if (failed > 0) return failed < all ? 'partial' : 'failed';
  return looked === 0 ? 'nothing-to-do' : 'done';
}

/** Whether anything is not as it was asked for. */
function isFailed({ error, findings }: VerifiedService): boolean {
  if (error !== undefined) return true;
  const all = [findings?.globals, ...(findings?.databases ?? []).map(({ finding }) => finding)];
  return all.some((finding) => finding !== undefined && troubleOf(finding) !== undefined);
}

function troubleOf(finding: Finding): string | undefined {
  if (finding.kind === 'unknown') return `it could not be looked at: ${finding.error}`;
  if (finding.error !== undefined) return finding.error;
  return finding.untried === undefined ? undefined : `it was not restored: ${finding.untried}`;
}

function renderService({ project, service, stamp, findings, error }: VerifiedService): string[] {
  const key = `${project}/${service}`;
  if (error !== undefined) return [`${key}: failed: ${foldLines(error)}`];
  if (findings === undefined) return [`${key}: it has no set yet`];
  const { globals, databases, notes } = findings;
  return [
    ...notes.map((note) => `${key} ${stamp}: ${note}`),
    ...(globals === undefined ? [] : [`${key} ${stamp} roles: ${tellFinding(globals)}`]),
    ...databases.map(
      ({ database, finding }) => `${key} ${stamp} ${JSON.stringify(database)}: ${tellFinding(finding)}`,
    ),
  ];
}

function tellFinding(finding: Finding): string {
  const trouble = troubleOf(finding);
  const told = trouble === undefined ? '' : foldLines(trouble, 2000);
  if (finding.kind === 'unknown') return told;
  const { level, restored } = finding;
  if (trouble !== undefined) return `${level}: ${told}`;
  if (restored === undefined) return level;
  const { tables, rows, durationMs } = restored;
  return `${level}: ${tables} tables, ${rows} rows, in ${formatDuration(durationMs)}`;
}

function describeService({ project, service, stamp, findings, error }: VerifiedService): object {
  return {
    ...{ project, service, set: stamp ?? null },
    ...(error === undefined ? {} : { error }),
    ...(findings?.globals === undefined ? {} : { globals: describeFinding(findings.globals) }),
    databases: (findings?.databases ?? []).map(({ database: name, finding }) => ({
      name,
      ...describeFinding(finding),
    })),
    notes: findings?.notes ?? [],
  };
}

function describeFinding(finding: Finding): object {
  const error = troubleOf(finding);
  const trouble = error === undefined ? {} : { error };
  if (finding.kind === 'unknown') return { level: null, ...trouble };
  return { level: finding.level, ...finding.restored, ...trouble };
}

export function toVerifyEvent(
  verified: VerifiedService & { stamp: string },
  { at, runId }: { at: Date; runId: string },
): HistoryEvent {
  const { project, service, stamp } = verified;
  const about = { at: at.toISOString(), run: runId, concern: 'backup', action: 'verify', project, service };
  const reason = `the set of ${stamp}`;
  if (!isFailed(verified)) return { ...about, reason, outcome: 'done' };
  const lines = renderService(verified).join('; ');
  return { ...about, reason, outcome: 'failed', error: foldLines(lines, 2000) };
}
