// The edge's Caddy: does it answer, does it come back by itself, and what a change does to those who are connected. Pure.
import { type Finding, failure, listNames, ok, orOk, warning } from './finding.ts';
import type { Listener } from './gather-listeners.ts';
import { judgeDomains, type ServedDomain } from './judge-domains.ts';

export type CaddyFacts = {
  /** URL of its admin API. */
  admin: string;
  /** Why that cannot be asked; absent: it answers. */
  error?: string;
  isInstalled: boolean;
  version?: string;
  /** Keeps tunnels open for a while when its configuration changes. */
  delaysClose: boolean;
  balancer: 'caddy' | 'haproxy';
  /** Its units; undefined where systemd does not run. */
  units?: readonly CaddyUnit[];
  /** `net.ipv4.tcp_migrate_req`; undefined for a kernel without it. */
  migrates?: boolean;
  /** Other programs that listen on its ports. */
  strangers: readonly Listener[];
  domains: readonly ServedDomain[];
};

export type CaddyUnit = {
  unit: string;
  active: boolean;
  /** Starts at boot. */
  enabled: boolean;
  /** `Restart=`. */
  restart: string;
  /** Starts with what it was given last. */
  resumes: boolean;
  /** A reload would put its own file in the place of all routes. */
  reloads: boolean;
};

export function judgeCaddy(facts: CaddyFacts, now: Date): Finding[] {
  const { admin, version, domains } = facts;
  return [
    ...orOk(
      [
        ...judgeAnswer(facts),
        ...facts.strangers.map(judgeStranger),
        ...judgeUnits(facts),
        ...judgeKernel(facts),
        ...judgeDomains(domains, now),
      ],
      ok(`version ${version ?? 'unknown'} answers, and comes back by itself`, { where: admin }),
    ),
    ...judgeTunnels(facts),
  ];
}

function judgeAnswer({ admin, error, isInstalled }: CaddyFacts): Finding[] {
  if (error === undefined) return [];
  if (!isInstalled)
    return [failure('it is not installed: no domain is served', { fix: 'apt-get install caddy' })];
  const fix = 'systemctl enable --now caddy; journalctl -u caddy -n 20 tells why it does not run';
  return [failure(error, { where: admin, fix })];
}

function judgeStranger({ port, programs }: CaddyFacts['strangers'][number]): Finding {
  const fix = 'stop it, or give Caddy another port (cluster.caddy.httpPort, httpsPort)';
  const names = programs.map(({ name, pid }) => `${name} (pid ${pid})`);
  return failure(`${listNames(names)} has the port`, { where: `port ${port}`, fix });
}

function judgeUnits({ error, units }: CaddyFacts): Finding[] {
  if (units === undefined || error !== undefined) return [];
  const unit = units.find(({ active }) => active);
  if (unit === undefined) {
    return [
      warning('it runs outside of caddy.service: nothing starts it again', {
        fix: 'end it, then systemctl enable --now caddy',
      }),
    ];
  }
  const where = unit.unit;
  if (where !== 'caddy.service') {
    const fix = `systemctl disable --now ${where} && systemctl enable --now caddy`;
    return [warning('it is not caddy.service, which reeve has settings for', { where, fix })];
  }
  const wrong = [
    ...(unit.restart === 'always' ? [] : ['it is not started again after a crash']),
    ...(unit.resumes ? [] : ['it starts without its routes']),
    ...(unit.reloads ? ['a reload removes its routes'] : []),
  ];
  const render = '`reeve units render --write`; settings of your own may be in the way (systemctl cat caddy)';
  return [
    ...(wrong.length === 0 ? [] : [warning(wrong.join(', '), { where, fix: render })]),
    ...(unit.enabled ? [] : [warning('it does not start at boot', { where, fix: 'systemctl enable caddy' })]),
  ];
}

function judgeKernel({ migrates }: CaddyFacts): Finding[] {
  if (migrates !== false) return [];
  return [
    warning('a change of its configuration resets connections that are about to be accepted', {
      where: 'net.ipv4.tcp_migrate_req = 0',
      fix: 'sysctl -w net.ipv4.tcp_migrate_req=1, as the next start of caddy.service does',
    }),
  ];
}

/** What a change closes; nobody would look for it at Caddy. */
function judgeTunnels({ version, delaysClose, balancer }: CaddyFacts): Finding[] {
  if (version === undefined) return [];
  const when = balancer === 'haproxy' ? 'the set of domains changes' : 'a domain or a backend changes';
  if (delaysClose) return [ok(`${version} keeps WebSockets open for up to an hour when ${when}`)];
  const what = `${version} closes every WebSocket when ${when}`;
  if (balancer === 'haproxy') return [ok(what)];
  return [warning(what, { fix: 'install HAProxy (apt-get install haproxy), or Caddy 2.7 or newer' })];
}
