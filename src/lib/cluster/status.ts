// Builds status.json: what each service's replicas amount to in one state and one message. launch-pad's CLI reads the result
// strictly, so it has exactly the fields of wire.ts.
import { compareBytewise } from './canonical.ts';
import {
  type BackupStatus,
  type CronStatus,
  type DesiredService,
  type HostSample,
  type JobRunStatus,
  type NodeStatus,
  type ReplicaStatus,
  type ServiceState,
  type ServiceStatus,
  serviceKey,
} from './wire.ts';

/** The words that engines have for it. */
type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';

/** A container as far as the status goes. */
export type ReplicaView = {
  index: number;
  containerId: string;
  hostPort: number | undefined;
  image: string;
  state: ContainerState;
  /** Id of the one-off run that it is. */
  jobRun?: string | undefined;
  /** Of a container that has ended, where it is known. */
  exitCode?: number | undefined;
  finishedAt?: string | undefined;
};

export type ServiceFacts = {
  service: DesiredService;
  /** All of the service's containers. */
  replicas: readonly ReplicaView[];
  /** What went wrong with the service in this tick. */
  error?: string | undefined;
  /** A step under way that the containers do not show. */
  phase?: 'pulling' | 'stopping' | undefined;
  cron?: CronStatus | undefined;
  backup?: BackupStatus | undefined;
};

/** The engine's words in launch-pad's. */
export function serviceStateOf(state: ContainerState): ServiceState {
  switch (state) {
    case 'running':
      return 'running';
    case 'exited':
    case 'dead':
      return 'stopped';
    case 'created':
    case 'restarting':
      return 'starting';
    case 'paused':
    case 'removing':
      return 'pending';
  }
}

export function buildServiceStatus(facts: ServiceFacts, now: Date): ServiceStatus {
  const { service } = facts;
  const replicas = facts.replicas.toSorted((left, right) => left.index - right.index).map(replicaStatus);
  const jobRun = jobRunStatus(facts);
  const { state, message } = rollUp(facts, replicas, jobRun);
  return {
    project: service.project,
    service: service.service,
    image: service.image,
    state,
    message,
    containerId: replicas[0]?.containerId ?? null,
    desiredReplicas: jobRun === undefined ? service.replicas : 0,
    runningReplicas: countRunning(replicas),
    replicas,
    ...(facts.cron === undefined ? {} : { cron: facts.cron }),
    ...(facts.backup === undefined ? {} : { backup: facts.backup }),
    ...(jobRun === undefined ? {} : { jobRun }),
    updatedAt: now.toISOString(),
  };
}

export type NodeStatusFacts = {
  nodeId: string;
  agentId: string;
  agentVersion: string;
  services: readonly ServiceStatus[];
  caddy?: NodeStatus['caddy'];
  edgeRoutes?: NodeStatus['edgeRoutes'];
  host?: HostSample | null;
};

export function buildNodeStatus(facts: NodeStatusFacts, now: Date): NodeStatus {
  return {
    nodeId: facts.nodeId,
    agentId: facts.agentId,
    lastSeen: now.toISOString(),
    agentVersion: facts.agentVersion,
    services: facts.services.toSorted((left, right) => compareBytewise(serviceKey(left), serviceKey(right))),
    caddy: facts.caddy ?? { managed: false, lastReloadAt: null, error: null },
    edgeRoutes: facts.edgeRoutes ?? [],
    ...(facts.host === undefined ? {} : { host: facts.host }),
  };
}

/** The status of a tick that could not be done at all: launch-pad's readers look for the reason in `caddy.error`. */
export function buildFailedStatus(
  facts: Omit<NodeStatusFacts, 'services' | 'caddy'>,
  message: string,
  now: Date,
): NodeStatus {
  return buildNodeStatus(
    { ...facts, services: [], caddy: { managed: false, lastReloadAt: null, error: message } },
    now,
  );
}

type RollUp = { state: ServiceState; message: string };

/** First match wins: this tick's error, the one-off run, the schedule, a step under way, the replicas. */
function rollUp(
  facts: ServiceFacts,
  replicas: readonly ReplicaStatus[],
  jobRun: JobRunStatus | undefined,
): RollUp {
  if (facts.error !== undefined) return { state: 'error', message: facts.error };
  if (jobRun !== undefined) return { state: jobServiceState[jobRun.state], message: jobRun.message };
  if (facts.service.cron !== undefined) {
    return { state: 'running', message: cronMessage(replicas, facts.cron) };
  }
  const state = facts.phase ?? replicasState(facts.service.replicas, replicas);
  return { state, message: state };
}

function replicasState(desired: number, replicas: readonly ReplicaStatus[]): ServiceState {
  const running = countRunning(replicas);
  if (desired > 0 && running >= desired) return 'running';
  if (running > 0) return 'starting';
  return replicas[0]?.state ?? 'pending';
}

/** An armed schedule is running, and a failed run is only told: one bad run must not hold up a deploy. */
function cronMessage(replicas: readonly ReplicaStatus[], cron: CronStatus | undefined): string {
  const hint = cron?.nextRunAt ? `, next run ${cron.nextRunAt}` : '';
  if (countRunning(replicas) > 0) return `run in progress${hint}`;
  if (cron?.lastExitCode === undefined || cron.lastExitCode === null) return `scheduled${hint}`;
  return cron.lastExitCode === 0
    ? `last run ok${hint}`
    : `last run failed (exit ${cron.lastExitCode})${hint}`;
}

const jobServiceState: Readonly<Record<JobRunStatus['state'], ServiceState>> = {
  pending: 'pending',
  running: 'running',
  succeeded: 'stopped',
  failed: 'error',
};

function jobRunStatus({ service, replicas, error }: ServiceFacts): JobRunStatus | undefined {
  const { jobRun } = service;
  if (jobRun === undefined) return undefined;
  const own = replicas.find((replica) => replica.jobRun === jobRun.id);
  const state = own === undefined ? 'pending' : jobState(own);
  const ended = state === 'succeeded' || state === 'failed';
  return {
    id: jobRun.id,
    requestedAt: jobRun.requestedAt,
    startedAt: own === undefined ? null : jobRun.requestedAt,
    finishedAt: ended ? (own?.finishedAt ?? null) : null,
    exitCode: ended ? (own?.exitCode ?? null) : null,
    state,
    message: error ?? jobMessage(state, own, replicas),
  };
}

function jobState(replica: ReplicaView): JobRunStatus['state'] {
  const state = serviceStateOf(replica.state);
  if (state !== 'stopped') return state === 'running' ? 'running' : 'pending';
  return replica.exitCode === 0 ? 'succeeded' : 'failed';
}

function jobMessage(
  state: JobRunStatus['state'],
  own: ReplicaView | undefined,
  replicas: readonly ReplicaView[],
): string {
  if (state === 'failed') return `failed (exit ${own?.exitCode ?? 'unknown'})`;
  if (state !== 'pending') return state;
  return replicas.some((replica) => replica.state === 'running') ? 'waiting' : 'pending';
}

function replicaStatus(replica: ReplicaView): ReplicaStatus {
  const state = serviceStateOf(replica.state);
  return {
    index: replica.index,
    containerId: replica.containerId,
    hostPort: replica.hostPort ?? null,
    state,
    image: replica.image,
    healthy: state === 'running',
  };
}

function countRunning(replicas: readonly ReplicaStatus[]): number {
  return replicas.filter((replica) => replica.state === 'running').length;
}
