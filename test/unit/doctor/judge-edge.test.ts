import { describe, expect, it } from 'vitest';
import { parseListening } from '../../../src/lib/doctor/gather-listeners.ts';
import { type BalancerFacts, judgeBalancer } from '../../../src/lib/doctor/judge-balancer.ts';
import { type CaddyFacts, type CaddyUnit, judgeCaddy } from '../../../src/lib/doctor/judge-caddy.ts';

const unit: CaddyUnit = {
  unit: 'caddy.service',
  active: true,
  enabled: true,
  restart: 'always',
  resumes: true,
  reloads: false,
};
const caddy: CaddyFacts = {
  admin: 'http://127.0.0.1:2019',
  isInstalled: true,
  version: '2.6.2',
  delaysClose: false,
  balancer: 'haproxy',
  units: [unit],
  migrates: true,
  strangers: [],
};
const admin = caddy.admin;
const problems = (changes: Partial<CaddyFacts>): object[] =>
  judgeCaddy({ ...caddy, ...changes }).filter(({ level }) => level !== 'ok');
const ofUnit = (changes: Partial<CaddyUnit>): object[] => problems({ units: [{ ...unit, ...changes }] });

describe('an edge’s Caddy', () => {
  it('that answers and comes back by itself is told with its version', () => {
    expect(judgeCaddy(caddy)).toEqual([
      { level: 'ok', what: 'version 2.6.2 answers, and comes back by itself', where: admin },
      { level: 'ok', what: '2.6.2 closes every WebSocket when the set of domains changes' },
    ]);
  });

  it('closes more where it balances by itself, which HAProxy or a later one would not (R44)', () => {
    expect(problems({ balancer: 'caddy' })).toEqual([
      {
        level: 'warning',
        what: '2.6.2 closes every WebSocket when a domain or a backend changes',
        fix: 'install HAProxy (apt-get install haproxy), or Caddy 2.7 or newer',
      },
    ]);
    expect(judgeCaddy({ ...caddy, version: '2.8.4', delaysClose: true, balancer: 'caddy' })[1]).toEqual({
      level: 'ok',
      what: '2.8.4 keeps WebSockets open for up to an hour when a domain or a backend changes',
    });
  });

  it('that does not answer is a failure, and another one where it is not there at all', () => {
    expect(problems({ error: 'cannot read', units: [] })).toEqual([
      expect.objectContaining({ level: 'failure', what: 'cannot read', where: admin }),
    ]);
    const { version: _, ...unknown } = caddy;
    expect(judgeCaddy({ ...unknown, error: 'cannot read', isInstalled: false, units: [] })).toEqual([
      { level: 'failure', what: 'it is not installed: no domain is served', fix: 'apt-get install caddy' },
    ]);
  });

  it('that would not come back, or not with its routes, is told of (R46)', () => {
    expect(ofUnit({ restart: 'no', resumes: false, reloads: true })).toEqual([
      {
        level: 'warning',
        what: 'it is not started again after a crash, it starts without its routes, a reload removes its routes',
        where: 'caddy.service',
        fix: expect.stringContaining('`reeve units render --write`'),
      },
    ]);
    expect(ofUnit({ enabled: false })).toEqual([
      {
        level: 'warning',
        what: 'it does not start at boot',
        where: 'caddy.service',
        fix: 'systemctl enable caddy',
      },
    ]);
  });

  it('that runs as another unit, or as none, has none of reeve’s settings', () => {
    const api = { ...unit, unit: 'caddy-api.service' };
    expect(problems({ units: [{ ...unit, active: false }, api] })).toEqual([
      {
        level: 'warning',
        what: 'it is not caddy.service, which reeve has settings for',
        where: 'caddy-api.service',
        fix: 'systemctl disable --now caddy-api.service && systemctl enable --now caddy',
      },
    ]);
    expect(ofUnit({ active: false })).toEqual([
      expect.objectContaining({ what: 'it runs outside of caddy.service: nothing starts it again' }),
    ]);
    const { units: _, ...withoutSystemd } = caddy;
    expect(judgeCaddy(withoutSystemd).filter(({ level }) => level !== 'ok')).toEqual([]);
  });

  it('whose kernel resets connections at a change is told of, unless that kernel knows no other way', () => {
    expect(problems({ migrates: false })).toEqual([
      expect.objectContaining({ level: 'warning', where: 'net.ipv4.tcp_migrate_req = 0' }),
    ]);
    const { migrates: _, ...oldKernel } = caddy;
    expect(judgeCaddy(oldKernel)[0]?.level).toBe('ok');
  });

  it('whose port another program has cannot serve', () => {
    expect(problems({ strangers: [{ port: 443, programs: ['nginx'] }] })).toEqual([
      {
        level: 'failure',
        what: 'nginx has the port',
        where: 'port 443',
        fix: 'stop it, or give Caddy another port (cluster.caddy.httpPort, httpsPort)',
      },
    ]);
  });
});

describe('the balancer', () => {
  const facts: BalancerFacts = {
    setting: 'auto',
    isInstalled: true,
    socket: '/run/reeve-balancer/runtime.sock',
    version: '2.6.12',
    oldWorkers: 0,
  };
  const where = facts.socket;

  it('is told with its version, and with the workers that a reload has left for their tunnels', () => {
    expect(judgeBalancer(facts)).toEqual([{ level: 'ok', what: 'HAProxy 2.6.12 answers', where }]);
    expect(judgeBalancer({ ...facts, oldWorkers: 2 })).toEqual([
      { level: 'ok', what: 'HAProxy 2.6.12 answers; 2 old workers still with tunnels', where },
    ]);
  });

  it('is Caddy where that is wanted, or where there is no HAProxy', () => {
    expect(judgeBalancer({ ...facts, setting: 'caddy' })).toEqual([
      { level: 'ok', what: 'Caddy balances by itself' },
    ]);
    expect(judgeBalancer({ ...facts, isInstalled: false })).toEqual([
      { level: 'ok', what: 'Caddy balances by itself: HAProxy is not installed' },
    ]);
  });

  it('is a failure where HAProxy is missing although it is wanted, or does not answer', () => {
    expect(judgeBalancer({ ...facts, setting: 'haproxy', isInstalled: false })[0]).toMatchObject({
      level: 'failure',
      fix: 'apt-get install haproxy, then systemctl start reeve-balancer.service',
    });
    expect(judgeBalancer({ ...facts, error: 'nobody listens' })[0]).toMatchObject({
      level: 'failure',
      what: 'nobody listens',
      where,
    });
  });
});

describe('the kernel’s table of sockets', () => {
  it('names who listens, in both kinds of addresses', () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1C84 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8939189 1 0
   1: 0100007F:1C84 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 8939200 1 0
`;
    const table6 = `   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0
`;
    expect(parseListening(table)).toEqual([{ inode: '8939189', port: 7300 }]);
    expect(parseListening(table6)).toEqual([{ inode: '77', port: 443 }]);
  });
});
