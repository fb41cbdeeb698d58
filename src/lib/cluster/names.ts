// Labels and names of what we make in a container engine, and the identity that labels carry. Launch-pad's own spelling, so
// that containers started by its agent are recognised; the labels with `reeve.` are ours.

export const labelNames = {
  managed: 'launchpad.managed',
  project: 'launchpad.project',
  service: 'launchpad.service',
  image: 'launchpad.image',
  replica: 'launchpad.replica',
  cpu: 'launchpad.cpu',
  memory: 'launchpad.memory',
  configStamp: 'launchpad.configStamp',
  /** Epoch milliseconds of the scheduled fire that a cron run belongs to. */
  cronFire: 'launchpad.cronFire',
  jobRun: 'launchpad.jobRun',
  /** The node that owns the container; absent on what launch-pad's agent has started. */
  node: 'reeve.node',
  /** A container for a moment's use, named for its run; it carries no other label. */
  scratch: 'reeve.scratch',
} as const;

/** The label that discovery asks for. */
export const managedFilter = `${labelNames.managed}=true`;

/** Which replica a container is, and what it was made from: all that drift is decided by. */
export type ReplicaIdentity = {
  project: string;
  service: string;
  image: string;
  index: number;
  cpu: number;
  memory: number;
  configStamp: string;
  /** Epoch milliseconds of the fire, on cron runs only. */
  cronFire: number | undefined;
  /** Id of the one-off run, on those only. */
  jobRun: string | undefined;
};

type Labels = Readonly<Record<string, string>>;

/** A replica's labels as they are written on its container. */
export function replicaLabels(identity: ReplicaIdentity, nodeId: string): Record<string, string> {
  return {
    [labelNames.managed]: 'true',
    [labelNames.project]: identity.project,
    [labelNames.service]: identity.service,
    [labelNames.image]: identity.image,
    [labelNames.replica]: String(identity.index),
    [labelNames.cpu]: String(identity.cpu),
    [labelNames.memory]: String(identity.memory),
    [labelNames.configStamp]: identity.configStamp,
    ...(identity.cronFire === undefined ? {} : { [labelNames.cronFire]: String(identity.cronFire) }),
    ...(identity.jobRun === undefined ? {} : { [labelNames.jobRun]: identity.jobRun }),
    [labelNames.node]: nodeId,
  };
}

/**
 * The identity that labels carry; undefined where they name no service. Labels that are missing or unreadable become values
 * that no desired state has (0, ''), so that the container is replaced once rather than ignored.
 */
export function parseReplicaLabels(labels: Labels): ReplicaIdentity | undefined {
  const project = labels[labelNames.project];
  const service = labels[labelNames.service];
  if (labels[labelNames.managed] !== 'true' || !project || !service) return undefined;
  const cronFire = parseCount(labels[labelNames.cronFire]);
  return {
    project,
    service,
    image: labels[labelNames.image] ?? '',
    index: parseCount(labels[labelNames.replica]),
    cpu: parseCount(labels[labelNames.cpu]),
    memory: parseCount(labels[labelNames.memory]),
    configStamp: labels[labelNames.configStamp] ?? '',
    cronFire: cronFire === 0 ? undefined : cronFire,
    jobRun: labels[labelNames.jobRun] || undefined,
  };
}

/** `ours`: we made it. `adoptable`: launch-pad's agent did. `stranger`: another node's. `foreign`: none of that. */
export type Ownership = 'ours' | 'adoptable' | 'stranger' | 'foreign';

export function ownershipOf(labels: Labels, nodeId: string): Ownership {
  if (labels[labelNames.managed] !== 'true') return 'foreign';
  const owner = labels[labelNames.node];
  if (owner === undefined) return 'adoptable';
  return owner === nodeId ? 'ours' : 'stranger';
}

export function containerName(replica: { project: string; service: string; index: number }): string {
  return `launchpad_${replica.project}_${replica.service}_${replica.index}`;
}

/** The network that a project's services share, each under its own name. */
export function networkName(project: string): string {
  return `launchpadnet_${project}`;
}

/** Independent of the replica's index: the data is there again after a rollout. */
export function volumeName(service: { project: string; service: string }, volume: string): string {
  return `${volumePrefix(service)}${volume}`;
}

function volumePrefix(service: { project: string; service: string }): string {
  return `launchpadvol_${service.project}_${service.service}_`;
}

function parseCount(text: string | undefined): number {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return 0;
  return Number(text);
}
