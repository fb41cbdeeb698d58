// What a command asks of a configuration that has been loaded. Each answers with the part asked for, or throws a
// ConfigError that says what to write or which command is meant.
import { ConfigError } from '../errors.ts';
import type { ClusterConfig, Config, Role } from './config.ts';

/** A reader of the store calls a node stale when its status is older than this. */
export const staleWindowMs = 60_000;

/** Without `commands.proxy_drain_timeout`, and where it cannot be read. The shipped unit of the proxy has its time to stop by it. */
export const defaultDrainMs = 30_000;

type SectionName = 'cluster' | 'jobs' | 'commands' | 'actions';

export type NodeConfig = ClusterConfig & { nodeId: string; agentId: string };

/** What a section cannot do without. */
const leastOf: Record<SectionName, string> = {
  cluster: 'nodeId and store',
  jobs: 'server_url and node_id, or file: /etc/ploy/ployd-node.yaml',
  commands: 'machine_id, token and central_base_url, or file: /etc/agenda-node/agenda-node.yaml',
  actions: 'node, or root on the control side',
};

export function requireSection<N extends SectionName>(config: Config, name: N): NonNullable<Config[N]> {
  const section = config[name];
  if (section === undefined) {
    const file = config.file ?? 'the configuration';
    throw new ConfigError(`section ${name} is missing in ${file}: write it, with ${leastOf[name]}`);
  }
  return section;
}

export function requireCluster(config: Config): ClusterConfig {
  return requireSection(config, 'cluster');
}

/** A machine that is a node, rather than one that only deploys. */
export function requireNode(config: Config): NodeConfig {
  const cluster = requireCluster(config);
  const { nodeId } = cluster;
  if (nodeId === undefined) {
    throw new ConfigError(
      `cluster.nodeId is missing in ${config.file ?? 'the configuration'}: this machine is no node`,
    );
  }
  return { ...cluster, nodeId, agentId: cluster.agentId ?? nodeId };
}

const commandOfRole: Record<Role, string> = { app: 'reeve reconcile', edge: 'reeve edge' };

/** A node does what its role says, and fails closed otherwise. */
export function requireRole(config: Config, role: 'edge', command: string): NodeConfig & { edgeId: string };
export function requireRole(config: Config, role: Role, command: string): NodeConfig;
export function requireRole(config: Config, role: Role, command: string): NodeConfig {
  const node = requireNode(config);
  if (!node.roles.includes(role)) {
    const right = node.roles.map((own) => `\`${commandOfRole[own]}\``).join(' or ');
    throw new ConfigError(
      `cannot run reeve ${command}: the role of node ${node.nodeId} is ${node.roles.join(' and ')}, not ${role}: run ${right} instead`,
    );
  }
  return role === 'edge' ? { ...node, edgeId: node.edgeId ?? node.nodeId } : node;
}

/** Concerns that not every configuration has a use for, as units have them in their names. */
const optional = [
  'reconcile',
  'edge',
  'heartbeat',
  'backup',
  'backup-verify',
  'prune',
  'balancer',
  'listen',
  'claim',
  'job',
  'api-jobs',
  'command',
  'api-commands',
  'proxy',
  'rsync-pull',
  'deploy-action',
  'action',
] as const;

/**
 * What this node does not do by its configuration, or no longer: how a concern's last run ended, before it was switched
 * off, says nothing about the node. Of a unit with instances it is the name before the `@`.
 */
export function listSwitchedOff({
  cluster,
  jobs,
  commands,
  actions,
}: Pick<Config, 'cluster' | 'jobs' | 'commands' | 'actions'>): ReadonlySet<string> {
  const { roles = [], notify = 'none', nodeId, balancer } = cluster ?? {};
  const [isApp, isEdge, hasJobs] = [roles.includes('app'), roles.includes('edge'), jobs !== undefined];
  const isActionsNode = actions !== undefined && actions.node !== '';
  const isOn: Record<(typeof optional)[number], boolean> = {
    reconcile: isApp,
    edge: isEdge,
    // Where no control plane of commands is named, it is still what keeps the proxy.
    heartbeat: nodeId !== undefined || hasJobs || commands !== undefined,
    backup: isApp,
    'backup-verify': isApp,
    prune: isApp,
    balancer: isEdge && balancer !== 'caddy',
    listen: nodeId !== undefined && notify === 'sns',
    claim: hasJobs,
    job: hasJobs,
    'api-jobs': hasJobs,
    command: commands !== undefined,
    'api-commands': commands !== undefined,
    proxy: commands !== undefined,
    'rsync-pull': isActionsNode,
    'deploy-action': isActionsNode,
    action: actions?.root !== undefined,
  };
  return new Set(optional.filter((concern) => !isOn[concern]));
}

/** The node's side of `actions`, rather than the control side alone. */
export function requireActionsNode(config: Config): NonNullable<Config['actions']> {
  const actions = requireSection(config, 'actions');
  if (actions.node === '') {
    throw new ConfigError(
      `actions.node is missing in ${config.file ?? 'the configuration'}: this machine has only the control side`,
    );
  }
  return actions;
}
