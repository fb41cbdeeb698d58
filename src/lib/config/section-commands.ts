// The section `commands`: agenda-node's keys, rules and defaults, and the user that commands run as.
import type { CommandsConfig } from './config.ts';
import { isPublicBind, parseListenAddress } from './listen.ts';
import type { CommandsInput } from './schema.ts';
import { given, isWebUrl, type Section, toMsOr } from './section.ts';

type CommandsSection = Section<CommandsInput>;

export function readCommands(section: CommandsSection): CommandsConfig {
  const { value } = section;
  const commands: CommandsConfig = {
    listenAddr: given(value.listen_addr) ?? '127.0.0.1:7100',
    proxyListenAddr: given(value.proxy_listen_addr) ?? '0.0.0.0:7200',
    proxyBackendHost: given(value.proxy_backend_host) ?? '127.0.0.1',
    machineId: readMachineId(section),
    token: readToken(section),
    centralBaseUrl: readCentralUrl(section),
    heartbeatIntervalMs: toMsOr(value.heartbeat_interval, 15_000),
    maxOutputBytes: value.max_output_bytes || 65_536,
    jobRetentionMs: toMsOr(value.job_retention, 3_600_000),
    proxyDrainTimeoutMs: toMsOr(value.proxy_drain_timeout, 30_000),
    user: value.user ?? 'root',
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

function readCentralUrl(section: CommandsSection): string {
  const url = given(section.value.central_base_url);
  if (url === undefined) {
    section.warn('commands.central_base_url is empty: no heartbeats are sent to that control plane');
    return '';
  }
  if (!isWebUrl(url)) {
    section.report(['central_base_url'], 'must be a URL that begins with http:// or https://');
  }
  return url.replace(/\/+$/, '');
}

function checkAddresses(section: CommandsSection, commands: CommandsConfig): void {
  const management = parseListenAddress(commands.listenAddr);
  if (management === undefined) {
    section.report(['listen_addr'], `must be HOST:PORT, not ${JSON.stringify(commands.listenAddr)}`);
  } else if (isPublicBind(management.host)) {
    section.warn(
      `commands.listen_addr ${commands.listenAddr} is not private: whoever has the token runs commands here as ${commands.user}`,
    );
  }
  if (parseListenAddress(commands.proxyListenAddr) === undefined) {
    section.report(
      ['proxy_listen_addr'],
      `must be HOST:PORT, not ${JSON.stringify(commands.proxyListenAddr)}`,
    );
  } else if (commands.proxyListenAddr === commands.listenAddr) {
    section.report(['proxy_listen_addr'], 'must differ from commands.listen_addr');
  }
}
