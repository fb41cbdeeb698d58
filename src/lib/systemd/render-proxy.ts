// What the section `commands` says to the proxy's units: where it is called, and how long a stop may take. Pure.
import type { CommandsConfig } from '../config/config.ts';
import { defaultDrainMs } from '../config/rules.ts';
import type { Rendered } from './render-edge.ts';
import { renderSocket } from './render-socket.ts';

/** What a drain and the end of requests take beside the time that tunnels have. */
const marginMs = 30_000;

/** `control`: what its service needs as every one that runs code of ours. */
export function renderProxy(commands: CommandsConfig, control: Rendered): Rendered[] {
  const stop = renderStop(commands);
  const head = control.lines.length === 0 && stop.length > 0 ? ['[Service]'] : [];
  const socket = renderSocket('reeve-proxy.socket', commands.proxyListenAddr, '0.0.0.0:7200');
  return [socket, { unit: control.unit, lines: [...head, ...control.lines, ...stop] }];
}

function renderStop({ proxyDrainTimeoutMs }: CommandsConfig): string[] {
  if (proxyDrainTimeoutMs === defaultDrainMs) return [];
  return ['# commands.proxy_drain_timeout', `TimeoutStopSec=${proxyDrainTimeoutMs + marginMs}ms`];
}
