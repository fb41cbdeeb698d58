// What a restore tells people, programs and history. Pure.
import type { Outcome } from '../../outcome.ts';
import type { HistoryEvent } from '../../state/history.ts';
import { formatDuration } from '../../time.ts';
import type { ChosenDump } from './choice.ts';
import type { Loaded } from './load.ts';

export type Restored = {
  key: string;
  target: string;
  chosen: ChosenDump;
  loaded: Omit<Loaded, 'name'>;
  /** It took the place of a database that was not empty. */
  replaced: boolean;
  roles: readonly string[];
  notes: readonly string[];
};

export function renderRestored(restored: Restored): Outcome {
  const { key, target, chosen, loaded, replaced, roles, notes } = restored;
  const { dump, record } = chosen;
  const [project = '', service = ''] = key.split('/');
  const { tables, rows, durationMs } = loaded;
  const compared = record === undefined ? 'as nothing says what it had, unproven' : 'as many as were dumped';
  const into = target === dump.database ? '' : ` into ${JSON.stringify(target)}`;
  const counts = `${tables} tables with ${rows} rows, ${compared}, in ${formatDuration(durationMs)}`;
  return {
    outcome: 'done',
    text: [
      ...notes,
      ...roles.map((role) => `made role ${JSON.stringify(role)}`),
      `${key}: restored ${JSON.stringify(dump.database)} of ${dump.stamp}${into}: ${counts}`,
    ],
    data: {
      ...{ project, service, database: dump.database, target, set: dump.stamp, key: dump.key },
      ...{ tables, rows, durationMs, proven: record !== undefined, replaced, roles, notes },
    },
  };
}

export function toRestoreEvent(
  { key, target, chosen: { dump } }: Pick<Restored, 'key' | 'target' | 'chosen'>,
  { at, runId, error }: { at: Date; runId: string; error?: string },
): HistoryEvent {
  const [project = '', service = ''] = key.split('/');
  const reason = `${JSON.stringify(dump.database)} of ${dump.stamp} into ${JSON.stringify(target)}`;
  const about = { at: at.toISOString(), run: runId, concern: 'backup', action: 'restore', project, service };
  return error === undefined
    ? { ...about, reason, outcome: 'done' }
    : { ...about, reason, outcome: 'failed', error };
}
