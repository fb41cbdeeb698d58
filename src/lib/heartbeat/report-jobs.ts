// One heartbeat to the server that hands out jobs, with what this machine has to spare, and its diagnostics after it.
import { renewWhereAsked, requireIdentity } from '../bootstrap/require.ts';
import type { JobsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { openControlPlane } from '../control-plane/client.ts';
import { type ControlPlane, ControlPlaneError } from '../control-plane/control-plane.ts';
import { pingEngine } from '../docker/ping.ts';
import { describeError } from '../errors.ts';
import type { DiskSpace } from '../host/parse.ts';
import { readDisks, readHost, readTraffic } from '../host/sample.ts';
import { judgeDisk, toHeartbeat, worstState } from '../host/snapshot.ts';
import { loadHttp } from '../http/client.ts';
import { heartbeatBackoff } from '../http/retry.ts';
import type { Outcome } from '../outcome.ts';
import type { DiagnosticsBody, HeartbeatBody } from '../ploy/wire.ts';
import { version } from '../version.ts';
import { noteBeats, readBeats } from './beats.ts';
import { type BeatEnd, isBeatDue, planNextBeat } from './plan-beat.ts';

const plane = 'jobs';

/** For whoever still waits for a lock. */
export function loadAhead(): void {
  loadHttp();
}

/** Throws where the server cannot be told; what that means for the next one is written down before. */
export async function reportToJobs(ctx: Context, jobs: JobsConfig): Promise<Outcome> {
  const { intervalMs, timeoutMs } = jobs.heartbeat;
  const before = await readBeats(ctx, plane);
  const now = ctx.clock.now();
  const timing = { now, intervalMs, backoff: heartbeatBackoff };
  if (!isBeatDue(before, timing)) {
    return { outcome: 'nothing-to-do', text: [`the next heartbeat of jobs is due at ${before?.nextAt}`] };
  }
  const write = async (end: BeatEnd): Promise<void> => {
    await noteBeats(ctx, plane, planNextBeat(before, end, { ...timing, random: Math.random() }));
  };
  const server = openControlPlane(ctx, jobs);
  try {
    const [disks, reading] = await Promise.all([
      readDisks(listDiskPaths(ctx)),
      readHost(now),
      makeReady(ctx, jobs).then(() => server.prepare()),
    ]);
    const body = toHeartbeat(reading, disks, version);
    // Looked at while the server is told.
    const looks = lookAround(ctx);
    await server.sendHeartbeat(body, timeoutMs);
    await Promise.all([write('ok'), sendDiagnostics(ctx, jobs, { server, body, disks, looks })]);
    return {
      outcome: 'done',
      text: [`node ${jobs.nodeId} is told to ${jobs.serverUrl}`],
      data: { jobs: body },
    };
  } catch (error) {
    await write(isServerTrouble(error) ? 'server' : 'other');
    throw error;
  } finally {
    server.close();
  }
}

/**
 * Once, and without waiting: other reports of this beat must not be late for it, and a claim asks patiently. A renewal that fails
 * leaves the certificate in use, which is still good.
 */
async function makeReady(ctx: Context, jobs: JobsConfig): Promise<void> {
  await requireIdentity(ctx, jobs, 'once');
  try {
    if (await renewWhereAsked(ctx, jobs)) ctx.log.info('the certificate has been renewed');
  } catch (error) {
    ctx.log.warning(`the certificate is not renewed: ${describeError(error)}`);
  }
}

function isServerTrouble(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.status !== undefined && error.status >= 500;
}

/** The five paths of the original: the one with the least room decides. */
function listDiskPaths({ overrides, paths }: Context): string[] {
  const listed = [
    '/',
    overrides.DOCKER_ROOT_DIR ?? '/var/lib/docker',
    overrides.PLOYD_CACHE_HOME ?? paths.cacheDir,
    overrides.PLOY_BUILDGATE_CACHE_ROOT,
    overrides.TMPDIR ?? '/tmp',
  ];
  return [...new Set(listed.filter((path) => path !== undefined))];
}

type Told = { server: ControlPlane; body: HeartbeatBody; disks: readonly DiskSpace[]; looks: Looks };

type Looks = Promise<[Awaited<ReturnType<typeof readTraffic>>, Awaited<ReturnType<typeof pingEngine>>]>;

function lookAround(ctx: Context): Looks {
  const ignored = (ctx.overrides.PLOY_LIFECYCLE_NET_IGNORE ?? '').split(',').map((glob) => glob.trim());
  const looks: Looks = Promise.all([
    readTraffic(ignored.filter((glob) => glob !== '')),
    pingEngine(ctx.config.cluster?.docker.socket ?? '/var/run/docker.sock'),
  ]);
  looks.catch(() => {});
  return looks;
}

/** Nothing rests on it: what goes wrong is only told. */
async function sendDiagnostics(
  ctx: Context,
  jobs: JobsConfig,
  { server, body, disks, looks }: Told,
): Promise<void> {
  const [traffic, docker] = await looks;
  const disk = judgeDisk(disks);
  const now = ctx.clock.now().toISOString();
  const diagnostics: DiagnosticsBody = {
    component: 'node',
    status: worstState([docker, disk]),
    version,
    details: {
      concurrency: jobs.concurrency,
      server_url: jobs.serverUrl,
      capacity: body,
      components: { docker, disk },
      storage: disks.map(({ path, totalBytes, freeBytes }) => ({ path, totalBytes, freeBytes })),
      disk_io: traffic.disk ?? null,
      network: traffic.network ?? null,
    },
    last_checked_at: now,
    last_success_at: now,
  };
  await server.sendDiagnostics(diagnostics).catch((error: unknown) => {
    ctx.log.warning(`the diagnostics are not sent: ${describeError(error)}`);
  });
}
