// The section `jobs`: ployd-node's keys, rules and defaults. What is missing is refused before any default is applied.
import type { JobsConfig } from './config.ts';
import { isLoopback, isPublicBind, parseSocketAddress } from './listen.ts';
import type { JobsInput } from './schema.ts';
import { given, isWebUrl, readDuration, type Section } from './section.ts';

/** More at once than this is a mistake, as in the original. */
const maxConcurrency = 64;

export function readJobs(section: Section<JobsInput>): JobsConfig {
  const { value } = section;
  const { http, heartbeat } = value;
  const duration = (path: string[], text: string | undefined, defaultMs: number): number =>
    readDuration(section, path, { text, defaultMs });
  const jobs: JobsConfig = {
    serverUrl: readServerUrl(section),
    nodeId: readNodeId(section),
    concurrency: readConcurrency(section),
    http: {
      listen: given(http?.listen) ?? ':8444',
      readTimeoutMs: duration(['http', 'read_timeout'], http?.read_timeout, 30_000),
      writeTimeoutMs: duration(['http', 'write_timeout'], http?.write_timeout, 30_000),
      idleTimeoutMs: duration(['http', 'idle_timeout'], http?.idle_timeout, 120_000),
      tls: readTls(section),
    },
    heartbeat: {
      intervalMs: duration(['heartbeat', 'interval'], heartbeat?.interval, 30_000),
      timeoutMs: duration(['heartbeat', 'timeout'], heartbeat?.timeout, 10_000),
    },
  };
  checkListen(section, jobs);
  return jobs;
}

function readServerUrl(section: Section<JobsInput>): string {
  const url = given(section.value.server_url);
  if (url === undefined) {
    section.report(['server_url'], 'is missing: write it, or name the file that has it with "file"');
    return '';
  }
  if (isWebUrl(url)) checkServerUrl(section, new URL(url));
  else section.report(['server_url'], 'must be a URL that begins with http:// or https://');
  return url.replace(/\/+$/, '');
}

/** Paths are appended to it, and it stands in messages. */
function checkServerUrl(section: Section<JobsInput>, url: URL): void {
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    section.report(['server_url'], 'must have no user, no password, no query and no fragment');
  }
  if (
    url.protocol === 'http:' &&
    !isLoopback(url.hostname.replace(/^\[|\]$/g, '')) &&
    url.hostname !== 'localhost'
  ) {
    section.warn(
      'jobs.server_url is http://: the token and what jobs get and tell go over the network in clear text',
    );
  }
}

function readNodeId(section: Section<JobsInput>): string {
  const nodeId = given(section.value.node_id);
  if (nodeId === undefined) section.report(['node_id'], 'is missing');
  else if (!/^[0-9A-Za-z_-]{1,64}$/.test(nodeId)) {
    section.report(
      ['node_id'],
      `must be 1 to 64 letters, digits, "_" and "-", not ${JSON.stringify(nodeId)}`,
    );
  }
  return nodeId ?? '';
}

function readConcurrency(section: Section<JobsInput>): number {
  const concurrency = section.value.concurrency ?? 1;
  if (concurrency > maxConcurrency) {
    section.warn(`jobs.concurrency ${concurrency} is capped at ${maxConcurrency}`);
    return maxConcurrency;
  }
  return Math.max(1, concurrency);
}

function readTls(section: Section<JobsInput>): JobsConfig['http']['tls'] {
  const tls = section.value.http?.tls;
  const enabled = tls?.enabled ?? false;
  const paths = {
    certPath: given(tls?.cert_path),
    keyPath: given(tls?.key_path),
    caPath: given(tls?.ca_path),
    bootstrapCaPath: given(tls?.bootstrap_ca_path),
  };
  if (enabled) {
    const required = { cert_path: paths.certPath, key_path: paths.keyPath, ca_path: paths.caPath };
    for (const [key, path] of Object.entries(required)) {
      if (path === undefined) section.report(['http', 'tls', key], 'is missing, and TLS is enabled');
    }
  }
  const known = Object.entries(paths).filter(([, path]) => path !== undefined);
  return { enabled, ...(Object.fromEntries(known) as Record<string, string>) };
}

function checkListen(section: Section<JobsInput>, { http }: JobsConfig): void {
  const address = parseSocketAddress(http.listen);
  if (address === undefined) {
    section.report(
      ['http', 'listen'],
      `must be IP:PORT, localhost:PORT or :PORT, as systemd listens there and looks up no names, not ${JSON.stringify(http.listen)}`,
    );
  } else if (!http.tls.enabled && isPublicBind(address.host)) {
    section.warn(
      `jobs.http.tls is off while jobs.http.listen is ${http.listen}: whoever reaches it can start containers`,
    );
  }
}
