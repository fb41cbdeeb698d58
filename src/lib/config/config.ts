// The configuration as the program sees it: defaults filled in, durations in milliseconds, overrides applied.
// `schema.ts` says what people may write; `load.ts` turns that into this.

export type Role = 'app' | 'edge';

export type ClusterConfig = {
  /** Absent on an operator's machine that only deploys. */
  nodeId?: string;
  agentId?: string;
  clusterId: string;
  roles: readonly Role[];
  /** The edge's id in the store; `<nodeId>-edge` on a box that is both. */
  edgeId?: string;
  region: string;
  advertiseIp?: string;
  /** Address that published ports are bound to, or `advertise` for `advertiseIp`. */
  publish: string;
  /** `file:///path` or `s3://bucket[/prefix]`. */
  store: string;
  endpoint?: string;
  /** `file:///path` or `ssm`. */
  secrets: string;
  notify: 'none' | 'sns';
  /** `file:///path` or `cloudwatch`. */
  logs: string;
  /** Bucket (`file:///path` or `s3://bucket`) for services whose backup names none. */
  backups: string;
  /** `statsMs` 0: no sampling. */
  intervals: { tickMs: number; livenessMs: number; statsMs: number; edgeMs: number };
  docker: { socket: string; parallel: number };
  caddy: CaddyConfig;
  balancer: 'auto' | 'haproxy' | 'caddy';
  haproxy: HaproxyConfig;
  /** Agent version that status.json reports. */
  agentVersion: string;
  /** Per-container sampling (LAUNCHPAD_STATS_SERVICES=0 turns it off). */
  statsServices: boolean;
  /** Log written and skipped store writes (LAUNCHPAD_DEBUG_S3=1). */
  debugStore: boolean;
  /** One tick only, also with --watch (LAUNCHPAD_ONCE=1). */
  once: boolean;
  /** launch-pad's state file, imported once. */
  importState: string;
};

/** The edge's Caddy: TLS and domains. */
export type CaddyConfig = {
  /** URL of its admin API, without a slash at the end. */
  admin: string;
  httpPort: number;
  httpsPort: number;
  /** Who signs certificates: an ACME authority, or Caddy's own for tests and private networks. */
  issuer: 'acme' | 'internal';
  /** Contact of the ACME account. */
  email?: string;
  /** URL of the ACME directory; absent: Caddy's own choice. */
  acmeDirectory?: string;
};

/** The edge's HAProxy, where it balances. */
export type HaproxyConfig = {
  /** `IP:PORT` on which it takes requests from Caddy. */
  address: string;
  /** Where its sockets are: `runtime.sock`, and `master.sock` for reloads. */
  directory: string;
};

export type JobsConfig = {
  serverUrl: string;
  nodeId: string;
  concurrency: number;
  http: {
    listen: string;
    readTimeoutMs: number;
    writeTimeoutMs: number;
    idleTimeoutMs: number;
    tls: { enabled: boolean; certPath?: string; keyPath?: string; caPath?: string; bootstrapCaPath?: string };
  };
  heartbeat: { intervalMs: number; timeoutMs: number };
};

export type CommandsConfig = {
  listenAddr: string;
  proxyListenAddr: string;
  proxyBackendHost: string;
  machineId: number;
  token: string;
  centralBaseUrl: string;
  heartbeatIntervalMs: number;
  maxOutputBytes: number;
  jobRetentionMs: number;
  proxyDrainTimeoutMs: number;
  user: string;
  /** A command that runs tells what it has printed; without it nothing, as in the original. */
  liveOutput: boolean;
  /** Of the management API; with `caPath` callers show a certificate of that authority. */
  tls?: { certPath: string; keyPath: string; caPath?: string };
};

export type ActionsConfig = {
  /** Empty, as are `pull`, `push` and `checkout`, on a machine that has only the control side. */
  node: string;
  pull: string;
  push: string;
  checkout: string;
  script?: string;
  /** The machine's own compose files and variables, one directory a service. */
  config: string;
  timeoutMs: number;
  /** Until what a deploy has started must run well. */
  verifyTimeoutMs: number;
  user: string;
  /** Control side only: where the state directories are. */
  root?: string;
  /** Control side: another time than 900 s after which an action without a result has failed. */
  resultTimeoutMs?: number;
};

export type HooksConfig = {
  failure?: { command?: readonly string[]; url?: string; timeoutMs: number };
};

export type Config = {
  /** The configuration file, for messages. */
  file?: string;
  cluster?: ClusterConfig;
  jobs?: JobsConfig;
  commands?: CommandsConfig;
  actions?: ActionsConfig;
  hooks: HooksConfig;
  /** What the loader noticed and did not refuse, one sentence each. */
  warnings: readonly string[];
};
