// The shipped units as data, as far as a configuration changes something about them. What they say by themselves stands in
// systemd/; a test holds the two together.
import type { ClusterConfig, Role } from '../config/config.ts';

/** Where the install puts unit files. What is below /etc/systemd/system is the machine's: drop-ins, links, masks. */
export const unitDirectory = '/usr/lib/systemd/system';
export const machineDirectory = '/etc/systemd/system';

/** Where backups go by default: the shipped unit may write there. */
export const backupsDirectory = '/var/backups/reeve';

/** Variables of the seeds, for the units that take them. */
export const environmentFile = '/etc/reeve/environment';

/** All else hangs below it. */
export const rootTarget = 'reeve.target';

export const roleTargets: Readonly<Record<Role, string>> = {
  app: 'reeve-app.target',
  edge: 'reeve-edge.target',
};

/** Of the section `jobs`. */
export const jobsTarget = 'reeve-jobs.target';

/** Of the section `commands`. */
export const commandsTarget = 'reeve-commands.target';

/** Of the node's side of the section `actions`. */
export const actionsTarget = 'reeve-actions.target';

/** Of its control side, where `actions.root` is set. */
export const actionTimer = 'reeve-action.timer';
export const actionPath = 'reeve-action.path';

/** The parts of the target of actions: which no configuration sets. */
export const actionsTimers: readonly string[] = ['reeve-rsync-pull.timer', 'reeve-deploy-action.timer'];

/** The API for jobs: wanted by the target, started by its callers. */
export const jobsSocket = 'reeve-api-jobs.socket';

/** The API for commands: the same. */
export const commandsSocket = 'reeve-api-commands.socket';

/** Claims: one window after another, which no configuration sets. */
export const claimTimer = 'reeve-claim.timer';

export const balancerService = 'reeve-balancer.service';

/** HAProxy on an edge: the socket first, which the service has its descriptor from. */
export const balancerUnits: readonly string[] = ['reeve-balancer.socket', balancerService];

/** HAProxy before this node's instances: the socket first, too. */
export const proxyUnits: readonly string[] = ['reeve-proxy.socket', 'reeve-proxy.service'];

/** Looks for backups that are due; which are is a matter of their schedules, so that no configuration sets it. */
export const backupTimer = 'reeve-backup.timer';

/** Listening for deploys, where they notify. */
export const listenTimer = 'reeve-listen.timer';

/** What a configuration switches on and off, and the target that starts it then; in the order in which it starts. */
export const switches: readonly { unit: string; wantedBy: string }[] = [
  ...Object.values(roleTargets).map((unit) => ({ unit, wantedBy: rootTarget })),
  ...balancerUnits.map((unit) => ({ unit, wantedBy: roleTargets.edge })),
  { unit: jobsTarget, wantedBy: rootTarget },
  { unit: commandsTarget, wantedBy: rootTarget },
  ...proxyUnits.map((unit) => ({ unit, wantedBy: commandsTarget })),
  { unit: actionsTarget, wantedBy: rootTarget },
  { unit: actionTimer, wantedBy: rootTarget },
  { unit: actionPath, wantedBy: rootTarget },
  { unit: listenTimer, wantedBy: rootTarget },
];

/** Units of others that get a drop-in of ours. */
export const foreignUnits: readonly string[] = ['caddy.service'];

/** Programs of others that units of ours are nothing without; where they are missing, so is what the units are for. */
export const neededPrograms: Readonly<Record<string, string>> = {
  'reeve-balancer.service': '/usr/sbin/haproxy',
  'reeve-proxy.service': '/usr/sbin/haproxy',
};

export type TimerUnit = {
  unit: string;
  interval: keyof ClusterConfig['intervals'];
  /** What the shipped unit has. */
  defaultMs: number;
  firstMs: number;
  /** The role that it belongs to; absent: either. */
  role?: Role;
  /** Follows the intervals of the control planes of jobs and of commands, too. */
  planes?: true;
};

/** Those whose interval the configuration sets. */
export const timers: readonly TimerUnit[] = [
  { unit: 'reeve-reconcile.timer', interval: 'tickMs', defaultMs: 60_000, firstMs: 2_000, role: 'app' },
  { unit: 'reeve-heartbeat.timer', interval: 'livenessMs', defaultMs: 30_000, firstMs: 25_000, planes: true },
  { unit: 'reeve-edge.timer', interval: 'edgeMs', defaultMs: 60_000, firstMs: 2_000, role: 'edge' },
];

/** Directories of the section `cluster` that a service reaches for. */
export type Place = 'store' | 'secrets' | 'logs' | 'backups';

/** What a service has to do with the section `jobs`, where there is one. */
export type JobsPart = {
  /** Certificate, key, token: read, or put in place. */
  identity: 'read' | 'write';
  /** Where workspaces are. */
  workspaces?: 'read' | 'write';
  /** Talks to the engine, and looks at what holds its disk: for this section's sake alone. */
  engine?: true;
};

export type ServiceUnit = {
  unit: string;
  places: Readonly<Partial<Record<Place, 'read' | 'write'>>>;
  /** Talks to the container engine; the others do not even see its socket. */
  engine: boolean;
  role?: Role;
  /** Only where deploys notify. */
  listens?: true;
  jobs?: JobsPart;
  /** Only with this section. */
  section?: 'jobs' | 'commands' | 'actions';
  /** Only with this part of the section `actions`. */
  side?: 'node' | 'control';
  /** False: outside any sandbox, for a reason that stands in it. */
  isConfined?: false;
  /** Starts units of jobs or commands, and so reaches systemd's own socket. */
  starts?: true;
};

/** One job: the one service with capabilities, whose reasons stand in it. */
const jobTemplate = 'reeve-job@.service';

/** One command: it may do what its user may. */
const commandTemplate = 'reeve-command@.service';

/** The deploy script: it may do what whoever runs it by hand may. */
const deployService = 'reeve-deploy-action.service';

/** What of ours the proxy's unit runs around HAProxy, in its sandbox. */
export const proxyControl: ServiceUnit = { unit: 'reeve-proxy.service', places: {}, engine: false };

/** Those that run code of ours. */
export const services: readonly ServiceUnit[] = [
  {
    unit: 'reeve-reconcile.service',
    places: { store: 'write', secrets: 'read' },
    engine: true,
    role: 'app',
  },
  {
    unit: 'reeve-heartbeat.service',
    places: { store: 'write' },
    engine: false,
    jobs: { identity: 'write', workspaces: 'read', engine: true },
  },
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
  {
    unit: 'reeve-claim.service',
    places: {},
    engine: true,
    section: 'jobs',
    jobs: { identity: 'write', workspaces: 'write' },
    starts: true,
  },
  {
    unit: jobTemplate,
    places: {},
    engine: true,
    section: 'jobs',
    jobs: { identity: 'read', workspaces: 'write' },
  },
  {
    unit: 'reeve-api-jobs.service',
    places: {},
    engine: false,
    section: 'jobs',
    jobs: { identity: 'read' },
    starts: true,
  },
  { unit: 'reeve-api-commands.service', places: {}, engine: false, section: 'commands', starts: true },
  { unit: commandTemplate, places: {}, engine: true, section: 'commands', isConfined: false },
  { unit: 'reeve-rsync-pull.service', places: {}, engine: false, section: 'actions', side: 'node' },
  {
    ...{ unit: deployService, places: {}, engine: true, section: 'actions', side: 'node' },
    isConfined: false,
  },
  { unit: 'reeve-action.service', places: {}, engine: false, section: 'actions', side: 'control' },
  { unit: 'reeve-failed@.service', places: {}, engine: false },
];

/** systemd's own socket: who reaches it orders systemd about. */
const systemdSocket = '/run/systemd/private';

/** `InaccessiblePaths=` of every service: passwords, keys, and the ways to order systemd about. */
const hiddenFromAll = [
  '/run/dbus/system_bus_socket',
  systemdSocket,
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/ssh',
  '/root',
];

/** Whoever may talk to an engine is root. */
const engineSockets = ['/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio'];

/** What containers hold is theirs: their file systems, their volumes. */
const engineData = ['/var/lib/docker', '/var/lib/containers', '/var/lib/containerd'];

/** Values for containers. */
const secretsPlace = '/etc/reeve/secrets';
/** Logins of registries. */
const loginsPlace = '/etc/reeve/docker';

/** Who a node is for ploy's server, and the token that it is exchanged for. */
const identityPlace = '/etc/ploy';
const tokenPlace = '/run/ploy';

/** `InaccessiblePaths=` of a service as shipped. `isEngineOpen`: the configuration has it talk to the engine. */
export function hiddenPaths(service: ServiceUnit, isEngineOpen = service.engine): readonly string[] {
  const { places, jobs, starts, unit, isConfined } = service;
  if (isConfined === false) return [];
  const hasLogins = places.secrets !== undefined || unit === jobTemplate;
  return [
    ...(isEngineOpen ? [] : engineSockets),
    ...hiddenFromAll.filter((path) => starts === undefined || path !== systemdSocket),
    ...(isEngineOpen ? [] : engineData),
    ...(places.secrets === undefined ? [secretsPlace] : []),
    ...(hasLogins ? [] : [loginsPlace]),
    ...(jobs === undefined ? [identityPlace] : []),
    ...(jobs?.identity === 'write' ? [] : [tokenPlace]),
  ];
}

/** `systemd-analyze security` counts in tenths. */
export const exposureLimit = 20;
/** What is above it for a reason that stands in the unit. */
export const exposedUnits: readonly string[] = [jobTemplate, commandTemplate, deployService];
