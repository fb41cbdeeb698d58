// What `config show` answers: the loaded configuration in the words of reeve.yaml, as would be written to get it
// without any default, seed file or variable. Secrets are hidden.
import type { Outcome } from '../outcome.ts';
import type {
  ActionsConfig,
  ClusterConfig,
  CommandsConfig,
  Config,
  HooksConfig,
  JobsConfig,
} from './config.ts';
import type { Overrides } from './environment.ts';
import { loadConfigAndFiles } from './load.ts';
import type { Paths } from './paths.ts';
import { renderYaml } from './yaml-text.ts';

const hidden = '***';

type ShownConfig = Readonly<Record<string, unknown>>;

export async function showConfig(paths: Paths, overrides: Overrides): Promise<Outcome> {
  const { config, files } = await loadConfigAndFiles(paths, overrides);
  const shown = describeConfig(config);
  const variables = Object.fromEntries(
    Object.entries(overrides).map(([name, value]) => [name, hideCredentials(value)]),
  );
  const text = [
    ...files.map((file) => `# from ${file}`),
    ...Object.entries(variables).map(([name, value]) => `# overridden by ${name}=${value}`),
    ...renderYaml(shown),
  ];
  return {
    outcome: 'done',
    text,
    data: { config: shown, files, overrides: variables, warnings: config.warnings },
  };
}

export function describeConfig(config: Config): ShownConfig {
  return withoutUndefined({
    cluster: config.cluster && describeCluster(config.cluster),
    jobs: config.jobs && describeJobs(config.jobs),
    commands: config.commands && describeCommands(config.commands),
    actions: config.actions && describeActions(config.actions),
    hooks: config.hooks.failure && { failure: describeFailureHook(config.hooks.failure) },
  });
}

function describeCluster(cluster: ClusterConfig): ShownConfig {
  const { intervals } = cluster;
  return withoutUndefined({
    nodeId: cluster.nodeId,
    agentId: cluster.agentId,
    clusterId: cluster.clusterId,
    role: cluster.roles.length > 1 ? cluster.roles : cluster.roles[0],
    edgeId: cluster.edgeId,
    region: cluster.region,
    advertiseIp: cluster.advertiseIp,
    publish: cluster.publish,
    store: cluster.store,
    endpoint: cluster.endpoint && hideCredentials(cluster.endpoint),
    secrets: cluster.secrets,
    notify: cluster.notify,
    logs: cluster.logs,
    backups: cluster.backups,
    intervals: {
      tick: exactDuration(intervals.tickMs),
      liveness: exactDuration(intervals.livenessMs),
      stats: exactDuration(intervals.statsMs),
      edge: exactDuration(intervals.edgeMs),
    },
    docker: cluster.docker,
    caddy: withoutUndefined({
      ...cluster.caddy,
      admin: hideCredentials(cluster.caddy.admin),
      acmeDirectory: cluster.caddy.acmeDirectory && hideCredentials(cluster.caddy.acmeDirectory),
    }),
    balancer: cluster.balancer,
    haproxy: cluster.haproxy,
  });
}

function describeJobs({ serverUrl, nodeId, concurrency, http, heartbeat }: JobsConfig): ShownConfig {
  const { tls } = http;
  return {
    server_url: hideCredentials(serverUrl),
    node_id: nodeId,
    concurrency,
    http: {
      listen: http.listen,
      read_timeout: exactDuration(http.readTimeoutMs),
      write_timeout: exactDuration(http.writeTimeoutMs),
      idle_timeout: exactDuration(http.idleTimeoutMs),
      tls: withoutUndefined({
        enabled: tls.enabled,
        cert_path: tls.certPath,
        key_path: tls.keyPath,
        ca_path: tls.caPath,
        bootstrap_ca_path: tls.bootstrapCaPath,
      }),
    },
    heartbeat: {
      interval: exactDuration(heartbeat.intervalMs),
      timeout: exactDuration(heartbeat.timeoutMs),
    },
  };
}

function describeCommands(commands: CommandsConfig): ShownConfig {
  const { tls } = commands;
  return withoutUndefined({
    listen_addr: commands.listenAddr,
    proxy_listen_addr: commands.proxyListenAddr,
    proxy_backend_host: commands.proxyBackendHost,
    machine_id: commands.machineId,
    token: hidden,
    central_base_url: hideCredentials(commands.centralBaseUrl),
    heartbeat_interval: exactDuration(commands.heartbeatIntervalMs),
    max_output_bytes: commands.maxOutputBytes,
    job_retention: exactDuration(commands.jobRetentionMs),
    proxy_drain_timeout: exactDuration(commands.proxyDrainTimeoutMs),
    user: commands.user,
    live_output: commands.liveOutput,
    tls: tls && withoutUndefined({ cert_path: tls.certPath, key_path: tls.keyPath, ca_path: tls.caPath }),
  });
}

function describeActions({ timeoutMs, verifyTimeoutMs, ...actions }: ActionsConfig): ShownConfig {
  return withoutUndefined({
    node: actions.node || undefined,
    pull: hideCredentials(actions.pull) || undefined,
    push: hideCredentials(actions.push) || undefined,
    checkout: actions.checkout || undefined,
    script: actions.script,
    config: actions.config,
    timeout: exactDuration(timeoutMs),
    verify_timeout: exactDuration(verifyTimeoutMs),
    user: actions.user,
    root: actions.root,
  });
}

/** Of the command only the program is shown, and of the URL only the host: what follows is often a key. */
function describeFailureHook(hook: NonNullable<HooksConfig['failure']>): ShownConfig {
  const { command, url } = hook;
  return withoutUndefined({
    command: command?.map((word, index) => (index === 0 || /^\{\w+\}$/.test(word) ? word : hidden)),
    url: url && `${new URL(url).origin}/${hidden}`,
    timeout: exactDuration(hook.timeoutMs),
  });
}

function hideCredentials(url: string): string {
  return url.replace(/\/\/[^/@]*@/, `//${hidden}@`);
}

/** The duration as the configuration spells it, to the millisecond. */
export function exactDuration(ms: number): string {
  if (ms % 1000 !== 0) return `${ms}ms`;
  if (ms >= 3_600_000 && ms % 3_600_000 === 0) return `${ms / 3_600_000}h`;
  return ms > 120_000 && ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`;
}

function withoutUndefined(value: Record<string, unknown>): ShownConfig {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined));
}
