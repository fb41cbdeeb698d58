// Jobs in words, for people. Pure.
import { formatBytes } from '../../backup/bytes.ts';
import { foldLines, renderTable } from '../../report/table.ts';
import { ago } from '../../status/ago.ts';
import { formatDuration } from '../../time.ts';
import type { JobDetails, JobSummary } from './describe.ts';

export function renderJobs(jobs: readonly JobSummary[], now: Date): string[] {
  if (jobs.length === 0) return ['no job'];
  const rows = jobs.map((job) => [
    foldLines(job.id),
    foldLines(job.run ?? '?'),
    foldLines(job.name ?? ''),
    renderState(job, renderCode(job)),
    job.open ? renderAge(job.claimedAt, now) : `ended ${ago(job.endedAt ?? '', now)}`,
    renderContainer(job),
  ]);
  return renderTable(['JOB', 'RUN', 'NAME', 'STATE', 'WHEN', 'CONTAINER'], rows);
}

/** As ` (3)`, where it tells more than the status. */
function renderCode({ exitCode }: JobSummary): string {
  return exitCode === null || exitCode === 0 ? '' : ` (${exitCode})`;
}

/** `running`; `Fail, undelivered`; `starting, nobody at it`; `code` stands behind the status. */
export function renderState(job: JobSummary, code = ''): string {
  const { open, held, phase, settled, cancelled } = job;
  const status = job.status === null ? null : `${job.status}${code}`;
  if (!open) return `${status ?? 'ended'}${settled === 'refused' ? ', refused by the server' : ''}`;
  const state = [
    status ?? phase ?? 'claimed',
    ...(status !== null && settled === null ? ['undelivered'] : []),
    ...(status === null && cancelled ? ['to be cancelled'] : []),
    ...(held ? [] : ['nobody at it']),
  ];
  return state.join(', ');
}

export function renderJob(job: JobDetails, now: Date): string[] {
  return [
    `job ${foldLines(job.id)}${job.name === null ? '' : ` (${foldLines(job.name)})`} of run ${foldLines(job.run ?? '?')}: ${renderState(job)}`,
    ...job.damaged.map((name) => `its ${name} is damaged: what it said is not known`),
    ...renderOrigin(job, now),
    ...renderWork(job),
    ...renderProgress(job, now),
    ...renderLogs(job),
    ...renderEnd(job),
    ...renderCompletion(job, now),
    ...renderCancel(job, now),
    ...renderSteps(job, now),
  ];
}

const sources = {
  claim: 'claimed from the server',
  api: "started through the node's API",
  adopted: 'taken over with its container from ployd-node',
} as const;

function renderOrigin({ source, claimedAt }: JobDetails, now: Date): string[] {
  if (source === null || claimedAt === null) return [];
  return [`${sources[source] ?? source} ${ago(claimedAt, now)}, at ${claimedAt}`];
}

function renderWork({ type, image, repository, ref }: JobDetails): string[] {
  const what = [
    ...(type === null ? [] : [`type ${type}`]),
    ...(image === null ? [] : [`image ${image}`]),
    ...(repository === null ? [] : [`repository ${repository}${ref === null ? '' : ` at ${ref}`}`]),
  ];
  return what.length === 0 ? [] : [foldLines(what.join(', '))];
}

function renderProgress(job: JobDetails, now: Date): string[] {
  const { phase, since, containerId, open, held } = job;
  const phaseText =
    phase === null || since === null
      ? ['no step has been recorded yet']
      : [`${phaseWords[phase] ?? phase} since ${ago(since, now)}`];
  return [
    ...(open ? phaseText : []),
    ...(open
      ? [held ? 'a process of reeve is at it' : 'nobody is at it now: the next claim goes on with it']
      : []),
    ...(containerId === null ? [] : [`container ${containerId}`]),
  ];
}

const phaseWords: Readonly<Record<string, string>> = {
  preparing: 'preparing: workspace, bundles and image are made ready',
  creating: 'creating: its container is made',
  starting: 'starting: its container is started',
  running: 'running: its container runs',
  ended: 'ended: logs, diff and artifacts go out',
};

function renderLogs({ logs }: JobDetails): string[] {
  if (logs === null) return [];
  const { chunks, sentBytes, closed, pending } = logs;
  const sent = `log: ${chunks} ${chunks === 1 ? 'chunk' : 'chunks'}, ${formatBytes(sentBytes)} with the server`;
  const way =
    pending === null ? '' : `, chunk ${pending.chunkNo} with ${formatBytes(pending.bytes)} on its way`;
  return [`${sent}${way}${closed ? ', closed' : ''}`];
}

function renderEnd({ end }: JobDetails): string[] {
  if (end === null) return [];
  const ranMs = Date.parse(end.finishedAt ?? '') - Date.parse(end.startedAt ?? '');
  const after = Number.isFinite(ranMs) ? ` after ${formatDuration(Math.max(0, ranMs))}` : '';
  const memory = end.oomKilled ? ', out of memory' : '';
  const error = end.error === '' ? '' : `: ${foldLines(end.error)}`;
  return [`its container ended with ${end.exitCode}${after}${memory}${error}`];
}

function renderCompletion({ completion, status, exitCode, settled }: JobDetails, now: Date): string[] {
  if (completion === null) return [];
  const { decidedAt, attempts, lastAttemptAt, lastError, settledAt, answer, error } = completion;
  const code = exitCode === null ? '' : `, exit code ${exitCode}`;
  const why = error === null ? '' : `: ${foldLines(error)}`;
  const tried = `sent ${attempts} ${attempts === 1 ? 'time' : 'times'}`;
  const last = lastAttemptAt === null ? '' : `, last ${ago(lastAttemptAt, now)}`;
  const told =
    settled === null
      ? `the server does not know yet: ${tried}${last}${lastError === null ? '' : `: ${foldLines(lastError)}`}`
      : `${settlements[settled] ?? settled} ${ago(settledAt ?? '', now)}, ${tried}${answer === null ? '' : `: ${foldLines(answer)}`}`;
  return [`it is a ${status}${code}${why}, decided ${ago(decidedAt, now)}`, told];
}

const settlements = {
  acknowledged: 'the server took it',
  'already-terminal': 'the server had it as ended already',
  refused: 'the server refused it for good',
} as const;

function renderCancel({ cancel }: JobDetails, now: Date): string[] {
  if (cancel === null) return [];
  return [`cancelled ${ago(cancel.at, now)} by the ${cancel.by}: ${foldLines(cancel.reason)}`];
}

function renderSteps({ steps }: JobDetails, now: Date): string[] {
  if (steps.length === 0) return [];
  const rows = steps.map(({ name, at, ms }) => [name, ago(at, now), formatDuration(ms)]);
  return renderTable(['STEP', 'BEGAN', 'TOOK'], rows);
}

function renderAge(claimedAt: string | null, now: Date): string {
  const ageMs = now.getTime() - Date.parse(claimedAt ?? '');
  return Number.isFinite(ageMs) ? `for ${formatDuration(Math.max(0, ageMs))}` : 'for an unknown time';
}

/** As `docker ps` shows it. */
function renderContainer({ containerId }: JobSummary): string {
  return containerId?.slice(0, 12) ?? '';
}
