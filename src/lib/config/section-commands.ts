// The section `commands`: agenda-node's keys, rules and defaults, the user that commands run as, and the API's certificate.

import { formatDuration } from '../time.ts';
import type { CommandsConfig } from './config.ts';
import { isLoopback, isPublicBind, type ListenAddress, parseSocketAddress } from './listen.ts';
import { defaultDrainMs } from './rules.ts';
import type { CommandsInput } from './schema.ts';
import { given, isWebUrl, readDuration, type Section } from './section.ts';

type CommandsSection = Section<CommandsInput>;

export function readCommands(section: CommandsSection): CommandsConfig {
  const { value } = section;
  const commands: CommandsConfig = {
    listenAddr: given(value.listen_addr) ?? '127.0.0.1:7100',
    proxyListenAddr: given(value.proxy_listen_addr) ?? '0.0.0.0:7200',
    // As programs in Go want an IPv6 address.
    proxyBackendHost: (given(value.proxy_backend_host) ?? '127.0.0.1').replace(/^\[(.*)\]$/, '$1'),
    machineId: readMachineId(section),
    token: readToken(section),
    centralBaseUrl: readCentralUrl(section),
    heartbeatIntervalMs: readInterval(section),
    maxOutputBytes: readOutputLimit(section),
    jobRetentionMs: readRetention(section),
    proxyDrainTimeoutMs: readDrainTimeout(section),
    user: value.user ?? 'root',
    liveOutput: value.live_output ?? false,
    ...readTls(section),
  };
  checkAddresses(section, commands);
  if (!/^[A-Za-z0-9_.:-]+$/.test(commands.proxyBackendHost)) {
    section.report(['proxy_backend_host'], 'must be a host name or an IP address');
  }
  return commands;
}

function readMachineId(section: CommandsSection): number {
  const machineId = section.value.machine_id;
  if (machineId === undefined) {
    section.report(['machine_id'], 'is missing: it is the id of this machine in the control plane');
    return 0;
  }
  if (machineId <= 0) section.report(['machine_id'], `must be more than 0, not ${machineId}`);
  return machineId;
}

function readToken(section: CommandsSection): string {
  const token = given(section.value.token);
  if (token === undefined) {
    section.report(['token'], 'is missing: it is the agent token of this machine in the control plane');
  } else if (!/^[\x21-\x7e]+$/.test(token)) {
    section.report(['token'], 'must be printable ASCII without blanks, as it travels in a header');
  }
  return token ?? '';
}

function readRetention(section: CommandsSection): number {
  const { job_retention: text } = section.value;
  return readDuration(section, ['job_retention'], { text, defaultMs: 3_600_000 });
}

/** Each heartbeat is a process, and so is the timer that finds none due. */
const shortestBeatMs = 1_000;

function readInterval(section: CommandsSection): number {
  const { heartbeat_interval: text } = section.value;
  const ms = readDuration(section, ['heartbeat_interval'], { text, defaultMs: 15_000 });
  if (ms < shortestBeatMs) {
    section.warn(
      `commands.heartbeat_interval ${text} is too little: it is ${formatDuration(shortestBeatMs)}`,
    );
  }
  return Math.max(ms, shortestBeatMs);
}

/** Of each command that runs so much is in memory, and of each that is asked for once more. */
const mostOutputBytes = 16 * 1024 * 1024;

function readOutputLimit(section: CommandsSection): number {
  const { max_output_bytes: written } = section.value;
  const bytes = written || 65_536;
  if (written === 0) section.warn(`commands.max_output_bytes 0 means the default, ${bytes}`);
  if (bytes > mostOutputBytes) {
    section.warn(`commands.max_output_bytes ${bytes} is too much: ${mostOutputBytes} are kept`);
  }
  return Math.min(bytes, mostOutputBytes);
}

/** A timer that is longer ends at once, and HAProxy closes a tunnel that has been silent for so long. */
const longestDrainMs = 24 * 24 * 60 * 60_000;

function readDrainTimeout(section: CommandsSection): number {
  const { proxy_drain_timeout: text } = section.value;
  const ms = readDuration(section, ['proxy_drain_timeout'], { text, defaultMs: defaultDrainMs });
  if (ms > longestDrainMs) {
    section.warn(
      `commands.proxy_drain_timeout ${text} is too much: ${formatDuration(longestDrainMs)} are given`,
    );
  }
  return Math.min(ms, longestDrainMs);
}

function readTls(section: CommandsSection): Pick<CommandsConfig, 'tls'> {
  const { tls } = section.value;
  if (tls === undefined) return {};
  const { cert_path: certPath, key_path: keyPath, ca_path: caPath } = tls;
  if (certPath === undefined) section.report(['tls', 'cert_path'], 'is missing');
  if (keyPath === undefined) section.report(['tls', 'key_path'], 'is missing');
  // Half of it is none: what an address without TLS is refused for stays refused.
  if (certPath === undefined || keyPath === undefined) return {};
  const pair = { certPath, keyPath };
  return { tls: caPath === undefined ? pair : { ...pair, caPath } };
}

function readCentralUrl(section: CommandsSection): string {
  const url = given(section.value.central_base_url);
  if (url === undefined) {
    section.warn('commands.central_base_url is empty: no heartbeats are sent to that control plane');
    return '';
  }
  if (isWebUrl(url)) checkCentralUrl(section, new URL(url));
  else section.report(['central_base_url'], 'must be a URL that begins with http:// or https://');
  return url.replace(/\/+$/, '');
}

/** Paths are appended to it, and the token goes there. */
function checkCentralUrl(section: CommandsSection, { search, hash, protocol, hostname }: URL): void {
  if (search !== '' || hash !== '') {
    section.report(['central_base_url'], 'must have no query and no fragment');
  }
  const isLocal = hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
  if (protocol === 'http:' && !isLocal) {
    section.warn(
      'commands.central_base_url is http://: the token, which is good for any command, goes over the network in clear text',
    );
  }
}

function checkAddresses(section: CommandsSection, commands: CommandsConfig): void {
  const management = readAddress(section, 'listen_addr', commands.listenAddr);
  const proxy = readAddress(section, 'proxy_listen_addr', commands.proxyListenAddr);
  if (management !== undefined && isPublicBind(management.host)) checkPublic(section, commands);
  if (management !== undefined && proxy !== undefined && isSame(management, proxy)) {
    section.report(['proxy_listen_addr'], 'must differ from commands.listen_addr');
  }
}

function readAddress(
  section: CommandsSection,
  key: 'listen_addr' | 'proxy_listen_addr',
  text: string,
): ListenAddress | undefined {
  const address = parseSocketAddress(text);
  if (address === undefined) {
    section.report(
      [key],
      `must be IP:PORT, localhost:PORT or :PORT, as systemd listens there and looks up no names, not ${JSON.stringify(text)}`,
    );
  }
  return address;
}

/** Whoever has the token runs commands, and without TLS whoever listens on the way has it. */
function checkPublic(section: CommandsSection, { listenAddr, tls, user }: CommandsConfig): void {
  if (tls === undefined) {
    section.report(
      ['listen_addr'],
      `${listenAddr} is not private, and there is no TLS: whoever hears the token runs commands here as ${user}: bind a private address, or write commands.tls`,
    );
    return;
  }
  section.warn(
    `commands.listen_addr ${listenAddr} is not private: whoever has the token runs commands here as ${user}`,
  );
}

const everywhere: readonly string[] = ['', '0.0.0.0', '::'];

function isSame(one: ListenAddress, other: ListenAddress): boolean {
  const isEverywhere = [one, other].some(({ host }) => everywhere.includes(host));
  return one.port === other.port && (isEverywhere || one.host === other.host);
}
