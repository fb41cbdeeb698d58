// The container that one replica of a service is, as the engine is asked for it. Pure.
import { containerName, networkName, replicaLabels, volumeName } from '../cluster/names.ts';
import { configStamp } from '../cluster/stamp.ts';
import type { DesiredService } from '../cluster/wire.ts';
import type { ContainerSpec } from '../docker/types.ts';

export type ReplicaRequest = {
  service: DesiredService;
  index: number;
  nodeId: string;
  /** Plain values and resolved secrets together. */
  env: Readonly<Record<string, string>>;
  /** Reserved host port; undefined for a worker. */
  hostPort: number | undefined;
  /** Address the port is bound to. */
  bindAddress: string;
  /** The fire that a scheduled run is for, epoch milliseconds. */
  fireMs?: number | undefined;
};

/** No container of ours fills the disk with its logs: 3 files of 10 MiB. */
const logLimits = { maxSizeBytes: 10 * 1024 * 1024, maxFiles: 3 };

export function buildContainerSpec(request: ReplicaRequest): ContainerSpec {
  const { service, index, nodeId, env, hostPort, bindAddress, fireMs } = request;
  const { project, image, cpu, memory, cron, jobRun } = service;
  const identity = {
    project,
    service: service.service,
    image,
    index,
    cpu,
    memory,
    configStamp: configStamp(service),
    cronFire: fireMs,
    jobRun: jobRun?.id,
  };
  const ports =
    hostPort === undefined || service.ingress === null
      ? []
      : [{ containerPort: service.ingress.port, hostPort, hostIp: bindAddress }];
  return {
    name: containerName(identity),
    image,
    env,
    labels: replicaLabels(identity, nodeId),
    cpus: cpu / 1024,
    memoryBytes: memory * 1024 * 1024,
    restart: cron === undefined && jobRun === undefined ? 'unless-stopped' : 'no',
    network: { name: networkName(project), aliases: [service.service] },
    ports,
    volumes: service.volumes.map(({ name, path }) => ({ name: volumeName(service, name), path })),
    logs: logLimits,
  };
}
