// The shipped units as data, as far as a configuration changes something about them. What they say by themselves stands in
// systemd/; a test holds the two together.
import type { ClusterConfig, Role } from '../config/config.ts';

/** Where the install puts unit files. What is below /etc/systemd/system is the machine's: drop-ins, links, masks. */
export const unitDirectory = '/usr/lib/systemd/system';
export const machineDirectory = '/etc/systemd/system';

/** Where backups go by default: the shipped unit may write there. */
export const backupsDirectory = '/var/backups/reeve';

/** All else hangs below it. */
export const rootTarget = 'reeve.target';

export const roleTargets: Readonly<Record<Role, string>> = {
  app: 'reeve-app.target',
  edge: 'reeve-edge.target',
};

/** HAProxy on an edge: the socket first, which the service has its descriptor from. */
export const balancerUnits: readonly string[] = ['reeve-balancer.socket', 'reeve-balancer.service'];

/** Looks for backups that are due; which are is a matter of their schedules, so that no configuration sets it. */
export const backupTimer = 'reeve-backup.timer';

/** Listening for deploys, where they notify. */
export const listenTimer = 'reeve-listen.timer';

/** What a configuration switches on and off, and the target that starts it then; in the order in which it starts. */
export const switches: readonly { unit: string; wantedBy: string }[] = [
  ...Object.values(roleTargets).map((unit) => ({ unit, wantedBy: rootTarget })),
  ...balancerUnits.map((unit) => ({ unit, wantedBy: roleTargets.edge })),
  { unit: listenTimer, wantedBy: rootTarget },
];

/** Units of others that get a drop-in of ours. */
export const foreignUnits: readonly string[] = ['caddy.service'];

/** Programs of others that units of ours are nothing without; where they are missing, so is what the units are for. */
export const neededPrograms: Readonly<Record<string, string>> = {
  'reeve-balancer.service': '/usr/sbin/haproxy',
};

export type TimerUnit = {
  unit: string;
  interval: keyof ClusterConfig['intervals'];
  /** What the shipped unit has. */
  defaultMs: number;
  firstMs: number;
  /** The role that it belongs to; absent: either. */
  role?: Role;
};

/** Those whose interval the configuration sets. */
export const timers: readonly TimerUnit[] = [
  { unit: 'reeve-reconcile.timer', interval: 'tickMs', defaultMs: 60_000, firstMs: 2_000, role: 'app' },
  { unit: 'reeve-heartbeat.timer', interval: 'livenessMs', defaultMs: 30_000, firstMs: 25_000 },
  { unit: 'reeve-edge.timer', interval: 'edgeMs', defaultMs: 60_000, firstMs: 2_000, role: 'edge' },
];

/** Directories of the configuration that a service reaches for. */
export type Place = 'store' | 'secrets' | 'logs' | 'backups';

export type ServiceUnit = {
  unit: string;
  places: Readonly<Partial<Record<Place, 'read' | 'write'>>>;
  /** Talks to the container engine; the others do not even see its socket. */
  engine: boolean;
  role?: Role;
  /** Only where deploys notify. */
  listens?: true;
};

/** Those that run code of ours. */
export const services: readonly ServiceUnit[] = [
  {
    unit: 'reeve-reconcile.service',
    places: { store: 'write', secrets: 'read' },
    engine: true,
    role: 'app',
  },
  { unit: 'reeve-heartbeat.service', places: { store: 'write' }, engine: false },
  {
    unit: 'reeve-backup.service',
    places: { store: 'read', backups: 'write' },
    engine: true,
    role: 'app',
  },
  {
    unit: 'reeve-backup-verify.service',
    places: { store: 'read', backups: 'write' },
    engine: true,
    role: 'app',
  },
  { unit: 'reeve-edge.service', places: { store: 'write' }, engine: false, role: 'edge' },
  { unit: 'reeve-listen.service', places: {}, engine: false, listens: true },
  { unit: 'reeve-prune.service', places: { store: 'read' }, engine: true, role: 'app' },
  { unit: 'reeve-failed@.service', places: {}, engine: false },
];

/** `InaccessiblePaths=` of every service: passwords, keys, and the ways to order systemd about. */
const hiddenFromAll = [
  '/run/dbus/system_bus_socket',
  '/run/systemd/private',
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/ssh',
  '/root',
];

/** Whoever may talk to an engine is root. */
const engineSockets = ['/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio'];

/** What containers hold is theirs: their file systems, their volumes. */
const engineData = ['/var/lib/docker', '/var/lib/containers', '/var/lib/containerd'];

/** Values for containers, and credentials of registries. */
const secretsPlaces = ['/etc/reeve/secrets', '/etc/reeve/docker'];

/** `InaccessiblePaths=` of a service as shipped. */
export function hiddenPaths({ engine, places }: Pick<ServiceUnit, 'engine' | 'places'>): readonly string[] {
  return [
    ...(engine ? [] : engineSockets),
    ...hiddenFromAll,
    ...(engine ? [] : engineData),
    ...(places.secrets === undefined ? secretsPlaces : []),
  ];
}

/** `systemd-analyze security` counts in tenths. */
export const exposureLimit = 20;
