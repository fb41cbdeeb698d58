// What is left to do once a job's container has ended: the rest of its log, its diff, its artifacts, and what it has come to.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeError } from '../errors.ts';
import type { ContainerEnd } from '../jobs/records.ts';
import { buildCompletion } from '../ploy/completion.ts';
import type { CompletionBody, CompletionStats, TimingName } from '../ploy/wire.ts';
import { shipRest } from './follow.ts';
import { collectResults } from './results.ts';
import type { JobSession } from './session.ts';
import { workspacePaths } from './workspace/paths.ts';

export async function finishJob(session: JobSession): Promise<CompletionBody> {
  const end = requireEnd(session);
  const layerBytes = readLayerBytes(session);
  const { understood, progress, claim } = session;
  const isCancelled = progress.cancelled !== undefined;
  if (understood.kind === 'work') {
    session.logPaths = workspacePaths(session.ctx, claim);
    if (end.exitCode !== 0 || isCancelled) await keepInspection(session);
  }
  await shipRest(session);
  const results = await collectResults(session, { end, timings: toTimings(session, end), isCancelled });
  if (end.oomKilled) await session.tell('error', `job ${claim.jobId}: its container ran out of memory`);
  if (results.error !== undefined) await session.tell('error', `job ${claim.jobId}: ${results.error}`);
  return buildCompletion({
    jobType: understood.kind === 'work' ? understood.payload.job_type : 'mig',
    exitCode: end.exitCode,
    isCancelled,
    durationMs: measureMs(session, end),
    error: results.error ?? describeEnd(end),
    timings: toTimings(session, end),
    resources: toResources(session, await layerBytes),
    metadata:
      claim.source === 'adopted'
        ? { source: 'startup_reconcile', container_id: session.containerId }
        : undefined,
    repoShaOut: results.repoShaOut,
  });
}

/** Of a container that was taken over, as long as it ran: it was claimed at a time that nobody here knows. */
function measureMs({ ctx, claim }: JobSession, { startedAt, finishedAt }: ContainerEnd): number {
  if (claim.source === 'adopted') return Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '');
  return ctx.clock.now().getTime() - Date.parse(claim.claimedAt);
}

/** A record that is damaged may lack it; then it ended somehow. */
function requireEnd({ progress }: JobSession): ContainerEnd {
  return progress.end ?? { exitCode: -1, oomKilled: false, error: 'how the container ended is not known' };
}

/** Only what the exit code does not say. */
function describeEnd({ exitCode, oomKilled, error }: ContainerEnd): string | undefined {
  if (exitCode === 0) return undefined;
  if (oomKilled) return 'the container ran out of memory';
  return error === '' ? undefined : error;
}

async function readLayerBytes({ engine, containerId, ctx }: JobSession): Promise<number | undefined> {
  try {
    return await engine.fetchLayerBytes(containerId);
  } catch (error) {
    ctx.log.debug(describeError(error));
    return undefined;
  }
}

/** For whoever asks why it failed, as the original leaves it. */
async function keepInspection(session: JobSession): Promise<void> {
  const { inspect } = workspacePaths(session.ctx, session.claim);
  try {
    const document = await session.engine.inspectContainerRaw(session.containerId);
    if (document === undefined) return;
    await mkdir(dirname(inspect), { recursive: true, mode: 0o750 });
    await writeFile(inspect, `${JSON.stringify(document, null, 2)}\n`, { mode: 0o600 });
  } catch (error) {
    session.ctx.log.warning(`cannot keep the container's inspection: ${describeError(error)}`);
  }
}

function toResources(
  { progress: { usage } }: JobSession,
  layerBytes: number | undefined,
): CompletionStats['job_resources'] {
  if (usage === undefined && layerBytes === undefined) return undefined;
  return {
    cpu_consumed_ns: usage?.cpuNs ?? 0,
    disk_consumed_bytes: layerBytes ?? 0,
    mem_consumed_bytes: usage?.memoryBytes ?? 0,
  };
}

const timedSteps: readonly [string, TimingName][] = [
  ['hydrate', 'hydration_duration_ms'],
  ['diff', 'diff_duration_ms'],
];

function toTimings(session: JobSession, end: ContainerEnd): Partial<Record<TimingName, number>> {
  const { progress } = session;
  const timings: Partial<Record<TimingName, number>> = {};
  for (const { name, ms } of progress.steps) {
    const timing = timedSteps.find(([step]) => step === name)?.[1];
    if (timing !== undefined) timings[timing] = ms;
  }
  const ranMs = Date.parse(end.finishedAt ?? '') - Date.parse(end.startedAt ?? '');
  if (Number.isFinite(ranMs)) timings.execution_duration_ms = ranMs;
  timings.total_duration_ms = measureMs(session, end);
  return timings;
}
