// Values of the cluster's vocabulary with everything filled in: a test names only what it is about.
import type { ReplicaIdentity } from '../../src/lib/cluster/names.ts';
import { configStamp } from '../../src/lib/cluster/stamp.ts';
import type {
  DesiredDocument,
  DesiredService,
  NodeStatus,
  ServiceStatus,
} from '../../src/lib/cluster/wire.ts';

/** A worker without ingress, volumes or schedule: `blog/web`, one replica. */
export function aService(overrides: Partial<DesiredService> = {}): DesiredService {
  return {
    project: 'blog',
    service: 'web',
    image: 'registry.example/blog/web:1.0.0',
    cpu: 512,
    memory: 256,
    replicas: 1,
    env: {},
    secretRefs: [],
    ingress: null,
    healthCheck: null,
    rollout: { maxSurge: 1, drainTimeout: '20s', stopGrace: '30s' },
    volumes: [],
    ...overrides,
  };
}

/** A service that the edge routes to and that is probed. */
export function aWebService(overrides: Partial<DesiredService> = {}): DesiredService {
  return aService({
    ingress: { domain: 'blog.example.com', port: 8080, edge: 'edge-1' },
    healthCheck: { path: '/healthz', intervalMs: 2000, timeoutMs: 2000, healthyThreshold: 2 },
    ...overrides,
  });
}

export function aDatabase(overrides: Partial<DesiredService> = {}): DesiredService {
  return aService({
    service: 'db',
    image: 'postgres:15',
    database: { engine: 'postgres', version: '15', databases: [] },
    volumes: [{ name: 'data', path: '/var/lib/postgresql/data' }],
    ...overrides,
  });
}

/** A whole desired.json of node `web-1`. */
export function aDesired(
  services: readonly DesiredService[] = [],
  overrides: Partial<DesiredDocument> = {},
): DesiredDocument {
  return {
    version: 3,
    nodeId: 'web-1',
    updatedAt: '2026-06-04T03:00:00.000Z',
    services: [...services],
    ...overrides,
  };
}

/** The identity of a replica made from the service as it stands: no drift. */
export function aReplica(service: DesiredService, overrides: Partial<ReplicaIdentity> = {}): ReplicaIdentity {
  return {
    project: service.project,
    service: service.service,
    image: service.image,
    index: 0,
    cpu: service.cpu,
    memory: service.memory,
    configStamp: configStamp(service),
    cronFire: undefined,
    jobRun: undefined,
    ...overrides,
  };
}

/** The status of a service with one running replica. */
export function aServiceStatus(overrides: Partial<ServiceStatus> = {}): ServiceStatus {
  return {
    project: 'blog',
    service: 'web',
    image: 'img:1',
    state: 'running',
    message: 'running',
    containerId: 'c0',
    desiredReplicas: 1,
    runningReplicas: 1,
    replicas: [
      { index: 0, containerId: 'c0', hostPort: 20000, state: 'running', image: 'img:1', healthy: true },
    ],
    updatedAt: '2026-06-04T03:00:00.000Z',
    ...overrides,
  };
}

export function aNodeStatus(overrides: Partial<NodeStatus> = {}): NodeStatus {
  return {
    nodeId: 'app-1',
    agentId: 'agent-1',
    lastSeen: '2026-06-04T03:00:00.000Z',
    agentVersion: '1.0.0',
    services: [aServiceStatus()],
    caddy: { managed: true, lastReloadAt: null, error: null },
    edgeRoutes: [],
    ...overrides,
  };
}
