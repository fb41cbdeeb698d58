// What an edge's configuration says to the units around it: what wakes it, where HAProxy listens, how Caddy runs. Pure.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { upstreamPrefix } from '../cluster/keys.ts';
import type { ClusterConfig } from '../config/config.ts';
import { plainPath, renderOpening, zoneOf } from './openings.ts';
import { printable, quote } from './quote.ts';

/** Settings of one unit; no lines where the configuration changes nothing about it. */
export type Rendered = { unit: string; lines: string[] };

/** For a node whose role has edge. */
export function renderEdge(cluster: ClusterConfig): Rendered[] {
  const forBalancer =
    cluster.balancer === 'caddy' ? [] : [renderSocket(cluster.haproxy.address), renderBalancer(cluster)];
  return [renderPath(cluster), ...forBalancer, { unit: 'caddy.service', lines: caddyLines }];
}

function renderPath({ store, clusterId, edgeId }: ClusterConfig): Rendered {
  const unit = 'reeve-edge.path';
  if (!store.startsWith('file:') || edgeId === undefined) return { unit, lines: [] };
  const directory = plainPath(join(fileURLToPath(store), upstreamPrefix(clusterId, edgeId)));
  return {
    unit,
    lines: [
      '[Path]',
      '# What nodes publish for this edge. Beside the wake, never instead of it: a change during a run is lost to this one.',
      // A path is the whole rest of the line: blanks and quotes in it need no quoting.
      `PathChanged=${printable(directory).replaceAll('%', '%%')}`,
    ],
  };
}

function renderSocket(address: string): Rendered {
  const unit = 'reeve-balancer.socket';
  if (address === '127.0.0.1:7300') return { unit, lines: [] };
  return {
    unit,
    lines: [
      '[Socket]',
      "# Empty first: else the unit's own address would stay in force beside this one.",
      'ListenStream=',
      `ListenStream=${address}`,
    ],
  };
}

function renderBalancer({ haproxy }: ClusterConfig): Rendered {
  const unit = 'reeve-balancer.service';
  const path = plainPath(haproxy.directory);
  if (path === '/run/reeve-balancer') return { unit, lines: [] };
  return {
    unit,
    lines: [
      '[Service]',
      ...renderOpening({ why: 'cluster.haproxy.directory', path, write: true, zone: zoneOf(path) }),
      `Environment=${quote(`REEVE_BALANCER_DIRECTORY=${path}`)}`,
    ],
  };
}

const autosave = '$${XDG_CONFIG_HOME:-$$HOME/.config}/caddy/autosave.json';

const caddyLines: string[] = [
  '[Unit]',
  '# Nothing may stop it for good: every domain of this edge hangs on it.',
  'StartLimitIntervalSec=0',
  '',
  '[Service]',
  'Restart=always',
  'RestartSec=250ms',
  '# With what `reeve edge` has given it last. The Caddyfile counts only where there is no such thing yet.',
  'ExecStart=',
  'ExecStart=/usr/bin/caddy run --environ --config /etc/caddy/Caddyfile --resume',
  '# None: it would put the Caddyfile in the place of all routes.',
  'ExecReload=',
  '# A new configuration gives Caddy new listeners. Without this the kernel resets connections that wait for the old ones.',
  "ExecStartPre=+-/bin/sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_migrate_req'",
  '# A configuration with which it cannot start (a power failure may cut one) is put aside; the edge brings the routes again.',
  `ExecStopPost=-/bin/sh -c '[ "$EXIT_CODE:$EXIT_STATUS" = exited:1 ] || exit 0; saved=${autosave}; test -e "$$saved" || exit 0; /usr/bin/caddy validate --config "$$saved" >/dev/null 2>&1 || mv -f "$$saved" "$$saved.refused"'`,
  'LimitNOFILE=1048576',
];
