// launch-pad's documents, to the byte: desired.json, status.json, shards, the registry files. Nothing else knows their fields.
// Field names, null against absent, and defaults are the system's own; see fingerprint.ts for what is hashed.
import type * as z from 'zod';
import type { serviceSchema } from './schema.ts';

/** The version of desired.json that we read and write. */
export const desiredVersion = 3;

/** One service on one node, as schema.ts leaves it: defaults filled in, unknown fields dropped. */
export type DesiredService = z.infer<typeof serviceSchema>;
export type Ingress = NonNullable<DesiredService['ingress']>;
export type HealthCheck = NonNullable<DesiredService['healthCheck']>;

export type DesiredDocument = {
  version: typeof desiredVersion;
  nodeId: string;
  updatedAt: string;
  services: DesiredService[];
};

export type ServiceState = 'pending' | 'pulling' | 'starting' | 'running' | 'stopping' | 'error' | 'stopped';

export type ReplicaStatus = {
  index: number;
  containerId: string | null;
  hostPort: number | null;
  state: ServiceState;
  image: string;
  healthy: boolean;
};

export type CronStatus = { lastRunAt: string | null; lastExitCode: number | null; nextRunAt: string | null };

export type BackupStatus = {
  lastRunAt: string | null;
  lastSuccessAt: string | null;
  lastError: string | null;
  nextRunAt: string | null;
  databases: { name: string; lastSuccessAt: string | null; sizeBytes: number | null }[];
};

export type JobRunStatus = {
  id: string;
  requestedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  exitCode: number | null;
  state: 'pending' | 'running' | 'succeeded' | 'failed';
  message: string;
};

export type ServiceStatus = {
  project: string;
  service: string;
  image: string;
  state: ServiceState;
  message: string;
  containerId: string | null;
  desiredReplicas: number;
  runningReplicas: number;
  replicas: ReplicaStatus[];
  cron?: CronStatus;
  backup?: BackupStatus;
  jobRun?: JobRunStatus;
  updatedAt: string;
};

export type HostSample = {
  cpuPercent: number;
  memoryUsedMb: number;
  memoryTotalMb: number;
  sampledAt: string;
};

export type NodeStatus = {
  nodeId: string;
  agentId: string;
  lastSeen: string;
  agentVersion: string;
  services: ServiceStatus[];
  caddy: { managed: boolean; lastReloadAt: string | null; error: string | null };
  edgeRoutes: { domain: string; upstreams: number }[];
  host?: HostSample | null;
};

export type ShardBackend = { domain: string; hostPort: number; healthPath?: string };
export type UpstreamShard = {
  nodeId: string;
  privateIp: string;
  updatedAt: string;
  backends: ShardBackend[];
};

/** `nodes/<id>/node.json`: the registry entry that launch-pad's own CLI reads, strictly. */
export type NodeRegistryEntry = {
  nodeId: string;
  clusterId: string;
  instanceId: string | null;
  instanceType: string;
  region: string;
  availabilityZone: string | null;
  role: 'app' | 'edge';
  privateIp: string | null;
  /** 1024 = one vCPU. */
  totalCpu: number;
  /** MB. */
  totalMemory: number;
  reservedCpu: number;
  reservedMemory: number;
  publicIp: string | null;
  eipAllocationId: string | null;
  securityGroupId: string | null;
  iamInstanceProfile: string | null;
  provisioning: 'ec2' | 'external';
  advertiseIp: string | null;
  iamUserName: string | null;
  agentId: string;
  agentVersion: string | null;
  agentType: 'ts' | 'rust';
  createdAt: string;
  createdBy: string;
  state: 'provisioning' | 'ready' | 'stopped' | 'terminating' | 'terminated';
};

export type EdgeRegistryEntry = { nodeId: string; domains: string[]; updatedAt: string };

export type ClusterDocument = {
  clusterId: string;
  defaultEdge: string | null;
  region: string;
  createdAt: string;
  createdBy: string;
  autoscale: unknown;
  snsTopicArn: string | null;
};

/** Every document in the store is JSON with two-space indentation and a final newline. */
export function renderDocument(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

export function serviceKey(service: { project: string; service: string }): string {
  return `${service.project}/${service.service}`;
}
