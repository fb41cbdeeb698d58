// The routes about instances: what they are asked and answer, and the sizes and times that both sides have agreed on.

export type InstanceRequest = {
  port: number;
  scheme: 'http' | 'https';
  /** Path and query, as they stand in a request line. */
  target: string;
};

export type ProbeRequest = InstanceRequest & { method: string; timeoutMs: number };

/** The instance's status as it is, whatever it is; 0 with an error where there is none. */
export type ProbeAnswer = { http_status: number; latency_ms: number; error?: string };

export type LogsRequest = {
  dir: string;
  tail: number;
  service?: string;
};

export type LogsAnswer = { app: string; instance: string; logs: readonly LogFile[] };

/** `service` is the rest of the name: a service, and with `__` after it the replica. Empty for an instance of one service. */
export type LogFile = { service: string; file: string; lines: readonly string[] };

const mib = 1 << 20;

export const limits = {
  /** Of a scrape, from its begin to the last byte. */
  metricsMs: 5_000,
  metricsBytes: 2 * mib,
  probeMs: 5_000,
  longestProbeMs: 30_000,
  logLines: 200,
  mostLogLines: 5_000,
  /** Of each file, from its end. */
  logBytes: 2 * mib,
} as const;

/** What the name of an instance's log file says after app and instance; undefined for any other file. */
export function readLogName(name: string, app: string, instance: string): string | undefined {
  if (!name.endsWith('.log')) return undefined;
  const base = name.slice(0, -'.log'.length);
  const own = `${app}__${instance}`;
  if (base === own) return '';
  return base.startsWith(`${own}__`) ? base.slice(own.length + 2) : undefined;
}
