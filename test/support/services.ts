// Services of the demo images, as a deploy file has them: quick to start, to prove themselves and to leave. Node and
// project are the test node's, which fills them in.

/** Two replicas of an HTTP server, probed five times a second. */
export function aWebDeploy(overrides: Readonly<Record<string, unknown>> = {}): object {
  const { service = 'web' } = overrides;
  return {
    service,
    image: 'reeve-demo/web:v1',
    replicas: 2,
    memory: 64,
    ingress: { domain: `${service}.example.com`, port: 8080, edge: 'edge-1' },
    healthCheck: { path: '/healthz', intervalMs: 200, timeoutMs: 2000, healthyThreshold: 2 },
    rollout: { maxSurge: 1, drainTimeout: '0s', stopGrace: '5s' },
    ...overrides,
  };
}

/** One container without ports. */
export function aWorkerDeploy(overrides: Readonly<Record<string, unknown>> = {}): object {
  return {
    service: 'worker',
    image: 'reeve-demo/worker:v1',
    memory: 64,
    rollout: { stopGrace: '5s' },
    ...overrides,
  };
}
