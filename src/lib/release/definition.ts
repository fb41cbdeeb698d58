// A service as people write it, turned into the one that desired.json has: shorthands written out, defaults filled in,
// fields always in the same order.
import type { DesiredService } from '../cluster/wire.ts';
import type { DeployService } from './schema.ts';

/** What the cluster says where the file says nothing. */
export type DeployDefaults = {
  clusterId: string;
  /** The cluster's own choice; undefined where it has none. */
  defaultEdge: string | undefined;
  /** Bucket for services whose backup names none. */
  backups: string;
};

export function toDesired(service: DeployService, defaults: DeployDefaults): DesiredService {
  const { project, service: name, image, cpu, memory, replicas, env } = service;
  return {
    project,
    service: name,
    image,
    cpu,
    memory,
    replicas,
    env,
    secretRefs: [
      ...service.secrets.map((secret) => toSecretRef(secret, service, defaults)),
      ...service.secretRefs,
    ],
    ...pickGiven(service, ['restartAt', 'cron', 'timeZone']),
    ingress: toIngress(service, defaults),
    healthCheck: service.healthCheck,
    rollout: service.rollout,
    volumes: service.volumes,
    ...pickGiven(service, ['database']),
    ...toBackup(service, defaults),
    ...pickGiven(service, ['jobRun']),
  };
}

/** Where a secret of the shorthand lies. */
function toSecretRef(
  name: string,
  { project, service }: DeployService,
  { clusterId }: DeployDefaults,
): DesiredService['secretRefs'][number] {
  return { name, ssm: `/launch-pad/${clusterId}/${project}/${service}/${name}` };
}

/** An edge that neither the file nor the cluster names is left empty, and refused by the rules. */
function toIngress({ ingress }: DeployService, { defaultEdge }: DeployDefaults): DesiredService['ingress'] {
  if (ingress === null) return null;
  return { domain: ingress.domain, port: ingress.port, edge: ingress.edge ?? defaultEdge ?? '' };
}

function toBackup(service: DeployService, defaults: DeployDefaults): Pick<DesiredService, 'backup'> {
  const { backup, project } = service;
  if (backup === undefined) return {};
  const { schedule, retentionDays } = backup;
  return {
    backup: {
      schedule,
      retentionDays,
      bucket: backup.bucket ?? defaults.backups,
      prefix: backup.prefix ?? `${defaults.clusterId}/${project}/${service.service}/`,
      ...pickGiven(backup, ['retention', 'timeZone']),
    },
  };
}

function pickGiven<T extends object, K extends keyof T>(value: T, names: readonly K[]): Pick<T, K> {
  const given = names.filter((name) => value[name] !== undefined).map((name) => [name, value[name]]);
  return Object.fromEntries(given) as Pick<T, K>;
}
