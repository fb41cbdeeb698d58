// The environment variables that mean something to us, as values. Together with paths.ts the only reader of process.env.

/** Seed systems' variables that override the configuration, by name. Empty strings count as unset. */
export type Overrides = Readonly<Partial<Record<OverrideName, string>>>;

export const overrideNames = [
  'LAUNCHPAD_POLL_MS',
  'LAUNCHPAD_LIVENESS_MS',
  'LAUNCHPAD_STATS_INTERVAL_MS',
  'LAUNCHPAD_STATS_SERVICES',
  'LAUNCHPAD_ONCE',
  'LAUNCHPAD_DEBUG_S3',
  'LAUNCHPAD_CADDY_ADMIN',
  'LAUNCHPAD_STATE',
  'LAUNCHPAD_AGENT_CONFIG',
  'LAUNCHPAD_ADVERTISE_IP',
  'LAUNCHPAD_BACKUP_DIR',
  'LAUNCHPAD_AGENT_VERSION',
  'AGENDA_NODE_CONFIG',
  'DEPLOY_TIMEOUT_SECS',
  'REDEPLOY_TIMEOUT_SECS',
  'AWS_ENDPOINT_URL',
  'AWS_ENDPOINT_URL_SSM',
  'PLOYD_CACHE_HOME',
  'PLOY_BOOTSTRAP_TOKEN_PATH',
  'PLOY_BUILDGATE_CACHE_ROOT',
  'PLOY_BUILDGATE_LIMIT_CPU_MILLIS',
  'PLOY_BUILDGATE_LIMIT_DISK_SPACE',
  'PLOY_BUILDGATE_LIMIT_MEMORY_BYTES',
  'PLOY_DOCKER_AUTH_CONFIG_FILE',
  'PLOY_DOCKER_AUTH_REFRESH_SOCKET',
  'PLOY_DOCKER_NETWORK',
  'PLOY_LIFECYCLE_NET_IGNORE',
  'PLOY_NODE_BEARER_TOKEN_PATH',
  'DOCKER_ROOT_DIR',
  'TMPDIR',
] as const;

export type OverrideName = (typeof overrideNames)[number];

export function readOverrides(env: NodeJS.ProcessEnv = process.env): Overrides {
  const overrides: Partial<Record<OverrideName, string>> = {};
  for (const name of overrideNames) {
    const value = env[name];
    if (value !== undefined && value !== '') overrides[name] = value;
  }
  return overrides;
}

/** What an image may be named by: `${PLOY_CONTAINER_REGISTRY}/job:1`, and whatever else an operator has set for it. */
export function readImageVariables(
  env: NodeJS.ProcessEnv = process.env,
): Readonly<Record<string, string | undefined>> {
  return env;
}

/** Who has become root by sudo. */
export function readSudoUser(env: NodeJS.ProcessEnv = process.env): string | undefined {
  return env['SUDO_USER'] || undefined;
}

/** The region of AWS's own tools, which `init` writes down; a configuration has one of its own. */
export function readRegion(env: NodeJS.ProcessEnv = process.env): string | undefined {
  return env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || undefined;
}

/** How we were started, as far as it changes what we print. */
export type Invocation = {
  /** stderr goes to the journal: lines carry a priority prefix and no colour. */
  journal: boolean;
  /** systemd started us (as opposed to a person). */
  unit: boolean;
  colour: boolean;
};

export function readInvocation(
  env: NodeJS.ProcessEnv = process.env,
  isTty = process.stderr.isTTY,
): Invocation {
  const journal = env['JOURNAL_STREAM'] !== undefined && isTty !== true;
  return {
    journal,
    unit: env['INVOCATION_ID'] !== undefined,
    colour: isTty === true && env['NO_COLOR'] === undefined && env['TERM'] !== 'dumb',
  };
}

/** What a program that we start inherits: enough to run, nothing of ours. */
export function childEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const child: Record<string, string> = {};
  for (const name of ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SSL_CERT_FILE']) {
    const value = env[name];
    if (value !== undefined) child[name] = value;
  }
  child['PATH'] ??= '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return child;
}

/**
 * How many sockets systemd has handed to this very process: `sd_listen_fds(3)`. The variables are gone afterwards, so that no
 * program that we start takes them for its own.
 */
export function takeListenFds(env: NodeJS.ProcessEnv = process.env, pid = process.pid): number {
  const { LISTEN_PID: owner, LISTEN_FDS: count } = env;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete env[name];
  return owner === String(pid) && /^[1-9]\d{0,3}$/.test(count ?? '') ? Number(count) : 0;
}

/** How a service's last run ended, as systemd tells programs that it starts for that: `systemd.exec(5)`. */
export type ServiceEnd = {
  /** `success`, `timeout`, `exit-code`, `signal`, `oom-kill`, `start-limit-hit` ... */
  result: string;
  /** `exited`, `killed` or `dumped`. */
  code: string | undefined;
  /** An exit status, or a signal's name without SIG. */
  status: string | undefined;
  invocationId: string | undefined;
};

/** For ExecStopPost=. Undefined where systemd did not start us for that. */
export function readServiceEnd(env: NodeJS.ProcessEnv = process.env): ServiceEnd | undefined {
  return readEnd(env, '');
}

/** For the unit that OnFailure= starts; systemd tells from version 251 on, and only of a single failed unit. */
export function readMonitoredEnd(env: NodeJS.ProcessEnv = process.env): ServiceEnd | undefined {
  return readEnd(env, 'MONITOR_');
}

function readEnd(env: NodeJS.ProcessEnv, prefix: string): ServiceEnd | undefined {
  const result = env[`${prefix}SERVICE_RESULT`];
  if (result === undefined || result === '') return undefined;
  return {
    result,
    code: env[`${prefix}EXIT_CODE`],
    status: env[`${prefix}EXIT_STATUS`],
    invocationId: env[`${prefix}INVOCATION_ID`],
  };
}
