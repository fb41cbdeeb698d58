// HAProxy behind the edge's Caddy. Pure.
import { type Finding, failure, ok, plural } from './finding.ts';

export type BalancerFacts = {
  setting: 'auto' | 'haproxy' | 'caddy';
  isInstalled: boolean;
  /** Where it is asked. */
  socket: string;
  /** Why it cannot be asked; absent: it answers, or nobody has asked. */
  error?: string;
  version?: string;
  /** Workers of before a reload, which stay for the tunnels that they hold. */
  oldWorkers: number;
};

export function judgeBalancer({
  setting,
  isInstalled,
  socket: where,
  error,
  version,
  oldWorkers,
}: BalancerFacts): Finding[] {
  if (setting === 'caddy') return [ok('Caddy balances by itself')];
  if (!isInstalled) {
    if (setting === 'auto') return [ok('Caddy balances by itself: HAProxy is not installed')];
    const fix = 'apt-get install haproxy, then systemctl start reeve-balancer.service';
    return [failure('HAProxy is not installed, and balances by cluster.balancer', { fix })];
  }
  if (error !== undefined) {
    const fix =
      'systemctl start reeve-balancer.service; journalctl -u reeve-balancer -n 20 tells why it does not run';
    return [failure(error, { where, fix })];
  }
  const old = oldWorkers === 0 ? '' : `; ${plural(oldWorkers, 'old worker')} still with tunnels`;
  return [ok(`HAProxy ${version ?? 'of unknown version'} answers${old}`, { where })];
}
