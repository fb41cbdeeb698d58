// What the section `commands` says to the proxy's units: where it is called, and how long a stop may take. Pure.
import { isIP } from 'node:net';
import type { CommandsConfig } from '../config/config.ts';
import { parseSocketAddress } from '../config/listen.ts';
import { InternalError } from '../errors.ts';
import type { Rendered } from './render-edge.ts';

/** What a drain and the end of requests take beside the time that tunnels have. */
const marginMs = 30_000;
const shippedDrainMs = 30_000;

/** `control`: what its service needs as every one that runs code of ours. */
export function renderProxy(commands: CommandsConfig, control: Rendered): Rendered[] {
  const stop = renderStop(commands);
  const head = control.lines.length === 0 && stop.length > 0 ? ['[Service]'] : [];
  return [renderSocket(commands), { unit: control.unit, lines: [...head, ...control.lines, ...stop] }];
}

/** As Go listens: without a host on all addresses, of either kind. */
function renderSocket({ proxyListenAddr }: CommandsConfig): Rendered {
  const unit = 'reeve-proxy.socket';
  const parsed = parseSocketAddress(proxyListenAddr);
  if (parsed === undefined) {
    throw new InternalError(`commands.proxy_listen_addr ${JSON.stringify(proxyListenAddr)} was let in`);
  }
  const { host, port } = parsed;
  const stream = host === '' ? `${port}` : `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  if (stream === '0.0.0.0:7200') return { unit, lines: [] };
  return {
    unit,
    lines: [
      '[Socket]',
      "# Empty first: else the unit's own address would stay in force beside this one.",
      'ListenStream=',
      `ListenStream=${stream}`,
    ],
  };
}

function renderStop({ proxyDrainTimeoutMs }: CommandsConfig): string[] {
  if (proxyDrainTimeoutMs === shippedDrainMs) return [];
  return ['# commands.proxy_drain_timeout', `TimeoutStopSec=${proxyDrainTimeoutMs + marginMs}ms`];
}
