// HAProxy behind the edge's Caddy. Pure.
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

export type BalancerFacts = {
  setting: 'auto' | 'haproxy' | 'caddy';
  isInstalled: boolean;
  /** Where it is asked. */
  socket: string;
  /** Why it cannot be asked; absent: it answers, or nobody has asked. */
  error?: string;
  /** It runs, and does not answer. */
  isHung?: boolean;
  version?: string;
  /** Workers of before a reload, which stay for the tunnels that they hold. */
  oldWorkers: number;
  /** How the servers of each fare; none where nobody has asked. */
  domains: readonly BalancedDomain[];
};

export type BalancedDomain = {
  domain: string;
  up: number;
  /** Addresses of those that are down. */
  down: readonly string[];
  healthPath: string | undefined;
};

/** More domains than this are counted: where a node is down, all of its domains are. */
const mostTold = 10;

export function judgeBalancer({
  setting,
  isInstalled,
  socket: where,
  error,
  isHung = false,
  version,
  oldWorkers,
  domains,
}: BalancerFacts): Finding[] {
  if (setting === 'caddy') return [ok('Caddy balances by itself')];
  if (!isInstalled) {
    if (setting === 'auto') return [ok('Caddy balances by itself: HAProxy is not installed')];
    const fix = 'apt-get install haproxy, then systemctl start reeve-balancer.service';
    return [failure('HAProxy is not installed, and balances by cluster.balancer', { fix })];
  }
  if (error !== undefined) {
    const fix = isHung
      ? 'systemctl restart reeve-balancer.service'
      : 'systemctl start reeve-balancer.service; journalctl -u reeve-balancer -n 20 tells why it does not run';
    return [failure(error, { where, fix })];
  }
  const old = oldWorkers === 0 ? '' : `; ${plural(oldWorkers, 'old worker')} still with tunnels`;
  return orOk(
    judgeBackends(domains),
    ok(`HAProxy ${version ?? 'of unknown version'} answers${old}`, { where }),
  );
}

function judgeBackends(domains: readonly BalancedDomain[]): Finding[] {
  const dead = domains.filter(({ up, down }) => up === 0 && down.length > 0);
  const weak = domains.filter(({ up, down }) => up > 0 && down.length > 0);
  return [
    ...dead.slice(0, mostTold).map(judgeDead),
    ...more(dead.length, 'have no backend that serves', failure),
    ...weak.slice(0, mostTold).map(judgeWeak),
    ...more(weak.length, 'have backends that do not serve', warning),
  ];
}

function judgeDead({ domain, down, healthPath }: BalancedDomain): Finding {
  const does = healthPath === undefined ? ['take', 'connections'] : ['answer', `GET ${healthPath}`];
  const [verb, object] = does;
  const what =
    down.length === 1
      ? `its backend does not ${verb} ${object}`
      : `none of its ${down.length} backends ${verb}s ${object}`;
  return failure(`${domain}: ${what}`, { fix: reach(down) });
}

function judgeWeak({ domain, up, down, healthPath }: BalancedDomain): Finding {
  const what = healthPath === undefined ? 'take no connections' : `do not answer GET ${healthPath}`;
  const count = `${down.length} of its ${up + down.length} backends`;
  return warning(`${domain}: ${count} ${what}`, { fix: reach(down) });
}

function reach(down: readonly string[]): string {
  return `can this machine reach ${listNames(down)}?`;
}

function more(count: number, what: string, judge: typeof failure): Finding[] {
  return count <= mostTold ? [] : [judge(`${count - mostTold} more domains ${what}`)];
}
