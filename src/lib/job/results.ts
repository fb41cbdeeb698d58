// What a job has left in the run's workspace, told to the server: its diff, the hash of the tree, and the artifacts.
import { readFile, stat } from 'node:fs/promises';
import { ControlPlaneError } from '../control-plane/control-plane.ts';
import { describeError, InternalError, ReeveError } from '../errors.ts';
import { claimBackoff, planBackoffMs } from '../http/retry.ts';
import type { ContainerEnd } from '../jobs/records.ts';
import { toTerminalStatus } from '../ploy/completion.ts';
import type { ClaimPayload, CompletionStats, TerminalStatus } from '../ploy/wire.ts';
import { isLeftToLater } from './patience.ts';
import type { JobSession } from './session.ts';
import { tellPackages } from './tell-server.ts';
import { buildArtifactBundle, bundleName, isBundleWanted, maxBundleBytes } from './workspace/artifacts.ts';
import { commitBaseline } from './workspace/baseline.ts';
import { type Looked, lookOnce } from './workspace/before.ts';
import { collectDiff } from './workspace/diff.ts';
import { type WorkspacePaths, workspacePaths } from './workspace/paths.ts';
import { computeRepoShaOut } from './workspace/repo-sha.ts';

/** `error` is why a job that ran well is none. */
export type Results = { error?: string; repoShaOut?: string };

export type ResultsAbout = { end: ContainerEnd; timings: CompletionStats['timings']; isCancelled: boolean };

type Finishing = ResultsAbout &
  Required<Looked> & { session: JobSession; payload: ClaimPayload; paths: WorkspacePaths };

/** So often is an upload tried by one run while the server has trouble of its own: eight seconds in all. */
const maxAttempts = 6;

/** Throws UnavailableError while the server is in trouble: the next run begins again with what is not settled. */
export async function collectResults(session: JobSession, about: ResultsAbout): Promise<Results> {
  const { understood, ctx, claim } = session;
  if (understood.kind !== 'work') return {};
  const paths = workspacePaths(ctx, claim);
  const finishing = { ...about, ...lookOnce(ctx, paths), session, payload: understood.payload, paths };
  const results = about.isCancelled ? {} : await readTree(finishing);
  if (finishing.payload.job_type !== 'mig' && !about.isCancelled) await tellPackages(session, paths);
  const { status } = toTerminalStatus({
    exitCode: results.error === undefined ? about.end.exitCode : undefined,
    isCancelled: about.isCancelled,
  });
  await sendArtifacts(session, status, (error) => isLeftToLater(session, error));
  return results;
}

/** Of a job that has ended without a container's end: what the run's jobs have left so far. As well as it can be done. */
export async function sendLeftovers(session: JobSession, status: TerminalStatus): Promise<void> {
  if (session.understood.kind !== 'work') return;
  const { artifacts } = workspacePaths(session.ctx, session.claim);
  const isThere = await stat(artifacts).then(
    () => true,
    () => false,
  );
  if (isThere) await sendArtifacts(session, status, async () => false);
}

async function readTree(finishing: Finishing): Promise<Results> {
  const { session, payload, end, paths, lookAfter } = finishing;
  const ctx = { ...session.ctx, lookAfter };
  const { id: runId, job_id: jobId, repo_sha_in: repoShaIn } = payload;
  try {
    if (payload.job_type === 'mig') await sendDiff(finishing);
    if (end.exitCode !== 0) return {};
    if (payload.job_type === 'mig') await commitBaseline(ctx, paths, { runId, jobId, signal: ctx.signal });
    if (repoShaIn === undefined) return {};
    return { repoShaOut: await computeRepoShaOut(ctx, paths, repoShaIn, ctx.signal) };
  } catch (error) {
    session.requireGoingOn();
    if (!(error instanceof ReeveError) || error instanceof InternalError) throw error;
    if (await isLeftToLater(session, error)) throw error;
    // What failed by itself keeps its own end.
    if (end.exitCode === 0) return { error: describeError(error) };
    await session.tell('warn', describeError(error));
    return {};
  }
}

/** Once: what is recorded as settled by a run before is not sent again. */
async function sendDiff({ session, payload, end, paths, timings, lookAfter }: Finishing): Promise<void> {
  if (session.progress.diffSettledAt !== undefined) return;
  const { ctx, controlPlane } = session;
  const { id: runId, job_id: jobId } = payload;
  const diff = await session.time('diff', () => collectDiff({ ...ctx, lookAfter }, paths, ctx.signal));
  if (diff === undefined) return;
  const { gzip } = diff;
  if (gzip === undefined) {
    await session.tell(
      'warn',
      `the diff of job ${jobId} is larger than the server takes: it is kept on the node`,
    );
  } else {
    const summary = {
      job_type: payload.job_type,
      exit_code: end.exitCode,
      files_changed: diff.filesChanged,
      lines_added: diff.linesAdded,
      lines_removed: diff.linesRemoved,
      timings,
    };
    await sendPatiently(session, () => controlPlane.uploadDiff({ runId, jobId, gzip, summary }));
  }
  await session.record({ diffSettledAt: ctx.clock.now().toISOString() });
}

/** Their loss is told and changes nothing about how the job has ended. */
async function sendArtifacts(
  session: JobSession,
  status: TerminalStatus,
  isKept: (error: unknown) => Promise<boolean>,
): Promise<void> {
  const { understood, ctx, controlPlane, claim } = session;
  if (understood.kind !== 'work') return;
  const { payload, gatesDisabled } = understood;
  const { id: runId, job_id: jobId } = payload;
  const isLast = payload.next_id === null;
  if (!isBundleWanted({ jobType: payload.job_type, isLast, gatesDisabled, status })) return;
  const paths = workspacePaths(ctx, claim);
  try {
    const bundle = await session.time('artifacts', () => buildArtifactBundle(ctx, paths, ctx.signal));
    if (bundle === undefined) return;
    if (bundle.sizeBytes > maxBundleBytes) {
      await session.tell(
        'warn',
        `the artifacts of job ${jobId} are larger than the server takes: they stay on the node`,
      );
      return;
    }
    const tarGz = await readFile(bundle.file);
    await sendPatiently(session, () =>
      controlPlane.uploadArtifact({ runId, jobId, tarGz, name: bundleName }),
    );
  } catch (error) {
    session.requireGoingOn();
    if (await isKept(error)) throw error;
    await session.tell('warn', describeError(error));
  }
}

async function sendPatiently(session: JobSession, send: () => Promise<void>): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    try {
      await send();
      return;
    } catch (error) {
      session.requireGoingOn();
      const isWorthIt = error instanceof ControlPlaneError && error.isTransient;
      if (!isWorthIt || failures >= maxAttempts) throw error;
    }
    await session.ctx.clock.sleep(planBackoffMs(claimBackoff, failures, Math.random()), session.ctx.signal);
  }
}
