// The shipped units as data, as far as a configuration changes something about them. What they say by themselves stands in
// systemd/; a test holds the two together.
import type { ClusterConfig, Role } from '../config/config.ts';

/** Where the install puts unit files. What is below /etc/systemd/system is the machine's: drop-ins, links, masks. */
export const unitDirectory = '/usr/lib/systemd/system';
export const machineDirectory = '/etc/systemd/system';

/** All else hangs below it. */
export const rootTarget = 'reeve.target';

export const roleTargets: Readonly<Record<Role, string>> = {
  app: 'reeve-app.target',
  edge: 'reeve-edge.target',
};

export type TimerUnit = {
  unit: string;
  interval: keyof ClusterConfig['intervals'];
  /** What the shipped unit has. */
  defaultMs: number;
  firstMs: number;
};

export const timers: readonly TimerUnit[] = [
  { unit: 'reeve-reconcile.timer', interval: 'tickMs', defaultMs: 60_000, firstMs: 2_000 },
  { unit: 'reeve-heartbeat.timer', interval: 'livenessMs', defaultMs: 30_000, firstMs: 25_000 },
];

/** Directories of the configuration that a service reaches for. */
export type Place = 'store' | 'secrets' | 'logs' | 'backups';

export type ServiceUnit = {
  unit: string;
  places: Readonly<Partial<Record<Place, 'read' | 'write'>>>;
  /** Talks to the container engine; the others do not even see its socket. */
  engine: boolean;
};

export const services: readonly ServiceUnit[] = [
  { unit: 'reeve-reconcile.service', places: { store: 'write', secrets: 'read' }, engine: true },
  { unit: 'reeve-heartbeat.service', places: { store: 'write' }, engine: false },
  { unit: 'reeve-prune.service', places: { store: 'read' }, engine: true },
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
