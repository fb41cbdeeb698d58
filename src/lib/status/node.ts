// This node as a person wants to see it: what runs, what each concern did last, who holds which lock. Read-only.
import type { NodeStatus, ServiceStatus } from '../cluster/wire.ts';
import { listSwitchedOff } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { isSystemdRunning } from '../exec/systemd.ts';
import { type Hold, readHolds } from '../hold/holds.ts';
import { describeHolder } from '../lock/holder.ts';
import { listLocks } from '../lock/list-locks.ts';
import type { Outcome } from '../outcome.ts';
import { readPublished } from '../publish/status-writer.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { type RunRecord, readRuns } from '../state/run-record.ts';
import { formatDuration } from '../time.ts';
import type { ActionsView } from './actions.ts';
import { ago } from './ago.ts';
import {
  type BackupsView,
  describeBackups,
  isBackupWrong,
  readBackupsView,
  renderBackups,
} from './backups.ts';
import type { CommandsView } from './commands.ts';
import { describeEdge, type EdgeView, isEdgeWrong, renderEdge } from './edge.ts';
import type { JobsView } from './jobs.ts';

/** `nextAt` where a timer will run it again; `off` where the configuration has no use for it. */
type ConcernView = RunRecord & { nextAt?: string; off?: true };

type HeldLock = { name: string; holder: string };

type NodeView = {
  now: Date;
  nodeId: string | undefined;
  /** Undefined where this node is no edge. */
  edge: EdgeView | undefined;
  /** Runs containers, or is no node at all. */
  isApp: boolean;
  published: { body: NodeStatus; lastWriteAt: string } | undefined;
  runs: readonly ConcernView[];
  backups: BackupsView;
  /** As lines and as data; undefined where this node runs no jobs. */
  jobs: { text: readonly string[]; data: JobsView } | undefined;
  /** The same of commands. */
  commands: { text: readonly string[]; data: CommandsView } | undefined;
  /** The same of actions, on a node of theirs or a control host. */
  actions: { text: readonly string[]; data: ActionsView } | undefined;
  locks: readonly HeldLock[];
  holds: readonly Hold[];
};

/** `failed` (exit 1) if a service is in error, a database's last backup failed, or the last run of a concern that is on. */
export async function showNode(ctx: Context): Promise<Outcome> {
  const now = ctx.clock.now();
  const published = await readPublished(ctx, 'app');
  const locks = await listLocks(ctx.paths.locksDir);
  const runs = await readConcerns(ctx, now);
  const view: NodeView = {
    now,
    nodeId: ctx.config.cluster?.nodeId,
    edge: await readEdge(ctx),
    isApp: isAppOrNone(ctx.config),
    published: published && { body: published.body, lastWriteAt: published.status.lastWriteAt },
    runs,
    backups: await readBackupsView(ctx, now),
    jobs: await readJobs(ctx, now, runs),
    commands: await readCommands(ctx, now),
    actions: await readActions(ctx, now),
    locks: locks
      .filter(({ held }) => held)
      .map(({ name, holder }) => ({ name, holder: describeHolder(holder, now) })),
    holds: await readHolds(ctx.paths, now),
  };
  const services = published?.body.services ?? [];
  const wrong =
    services.some(({ state }) => state === 'error') ||
    (view.edge !== undefined && isEdgeWrong(view.edge)) ||
    isBackupWrong(view.backups) ||
    view.runs.some(({ exitCode, off }) => off !== true && isFailure(exitCode));
  return {
    outcome: wrong ? 'failed' : 'done',
    text: renderNode(view),
    data: {
      node: view.nodeId ?? null,
      publishedAt: view.published?.lastWriteAt ?? null,
      services,
      ...(view.edge && { edge: describeEdge(view.edge) }),
      backups: describeBackups(view.backups, now),
      ...(view.jobs && { jobs: view.jobs.data }),
      ...(view.commands && { commands: view.commands.data }),
      ...(view.actions && { actions: view.actions.data }),
      concerns: view.runs,
      locks: view.locks,
      holds: view.holds,
    },
  };
}

async function readEdge(ctx: Context): Promise<EdgeView | undefined> {
  const { cluster } = ctx.config;
  if (cluster?.nodeId === undefined || !cluster.roles.includes('edge')) return undefined;
  const { askBalancer } = await import('./edge-live.ts');
  return {
    edgeId: cluster.edgeId ?? cluster.nodeId,
    published: await readPublished(ctx, 'edge'),
    caddy: cluster.caddy,
    balancer: await askBalancer(cluster, ctx),
  };
}

/** A node of jobs, commands or actions alone publishes nothing, also where its section cluster names no more than the engine. */
function isAppOrNone({ cluster, jobs, commands, actions }: Context['config']): boolean {
  const isOther = [jobs, commands, actions].some((section) => section !== undefined);
  if (cluster === undefined) return !isOther;
  if (cluster.nodeId === undefined && isOther) return false;
  return !cluster.roles.includes('edge') || cluster.roles.includes('app');
}

/** Loaded only where there are any. */
async function readJobs(ctx: Context, now: Date, runs: readonly ConcernView[]): Promise<NodeView['jobs']> {
  const { jobs } = ctx.config;
  if (jobs === undefined) return undefined;
  const { readJobsView, renderJobsView } = await import('./jobs.ts');
  const lastClaim = runs.find(({ concern }) => concern === 'claim');
  const data = await readJobsView(ctx, { jobs, lastClaim, now });
  return { text: renderJobsView(data, now), data };
}

/** Loaded only where there are any. */
async function readCommands(ctx: Context, now: Date): Promise<NodeView['commands']> {
  const { commands } = ctx.config;
  if (commands === undefined) return undefined;
  const { readCommandsView, renderCommandsView } = await import('./commands.ts');
  const data = await readCommandsView(ctx, commands);
  return { text: renderCommandsView(data, now), data };
}

/** Loaded only where there are any. */
async function readActions(ctx: Context, now: Date): Promise<NodeView['actions']> {
  const { actions } = ctx.config;
  if (actions === undefined) return undefined;
  const { readActionsView, renderActionsView } = await import('./actions.ts');
  const data = await readActionsView(ctx, actions);
  return { text: renderActionsView(data, now), data };
}

async function readConcerns(ctx: Context, now: Date): Promise<ConcernView[]> {
  const off = listSwitchedOff(ctx.config);
  const runs = (await readRuns({ paths: ctx.paths, now, log: ctx.log })).map(
    (run): ConcernView => (off.has(run.concern) ? { ...run, off: true } : run),
  );
  if (!isSystemdRunning()) return runs;
  const next = await readTimers(ctx);
  return runs.map((run) => {
    const nextAt = next.get(`reeve-${run.concern}.timer`);
    return nextAt === undefined ? run : { ...run, nextAt: nextAt.toISOString() };
  });
}

/** What lists units is loaded only where there are any. */
async function readTimers(ctx: Context): Promise<ReadonlyMap<string, Date>> {
  const { readNextRuns } = await import('../systemd/list.ts');
  try {
    return await readNextRuns(ctx.signal);
  } catch (error) {
    ctx.log.warning(`cannot tell when the timers fire next: ${describeError(error)}`);
    return new Map();
  }
}

function isFailure(exitCode: number | null): boolean {
  return exitCode !== null && ![0, 2, 75].includes(exitCode);
}

function renderNode(view: NodeView): string[] {
  const { now, edge, runs, locks, holds } = view;
  return [
    ...(view.isApp ? renderApp(view) : []),
    ...(edge === undefined ? [] : renderEdge(edge, now)),
    ...renderBackups(view.backups, now),
    ...(view.jobs?.text ?? []),
    ...(view.commands?.text ?? []),
    ...(view.actions?.text ?? []),
    ...renderRuns(runs, now),
    ...locks.map(({ name, holder }) => `lock ${name}: held by ${holder}`),
    ...holds.map(({ target, until, reason }) => `hold ${target}: until ${until}: ${reason}`),
  ];
}

function renderApp({ now, nodeId, published }: NodeView): string[] {
  const age =
    published === undefined ? 'nothing published yet' : `published ${ago(published.lastWriteAt, now)}`;
  return [
    `node ${nodeId ?? '(none: this machine only deploys)'}: ${age}`,
    ...(published === undefined ? [] : renderServices(published.body.services)),
  ];
}

function renderServices(services: readonly ServiceStatus[]): string[] {
  if (services.length === 0) return ['no services'];
  const rows = services.map((service) => [
    `${service.project}/${service.service}`,
    service.state,
    `${service.runningReplicas}/${service.desiredReplicas}`,
    service.image,
    service.message === service.state ? '' : foldLines(service.message),
  ]);
  return renderTable(['SERVICE', 'STATE', 'REPLICAS', 'IMAGE', 'MESSAGE'], rows);
}

function renderRuns(runs: readonly ConcernView[], now: Date): string[] {
  if (runs.length === 0) return ['no concern has run yet'];
  const rows = runs.map((run) => [
    run.concern,
    run.off === true ? `${run.outcome ?? 'running'}, now off` : (run.outcome ?? 'running'),
    ago(run.endedAt ?? run.startedAt, now),
    run.nextAt === undefined
      ? ''
      : `in ${formatDuration(Math.max(0, Date.parse(run.nextAt) - now.getTime()))}`,
    run.durationMs === null ? '' : formatDuration(run.durationMs),
    run.runId,
    foldLines(run.error ?? ''),
  ]);
  return renderTable(['CONCERN', 'LAST', 'WHEN', 'NEXT', 'TOOK', 'RUN', 'ERROR'], rows);
}
