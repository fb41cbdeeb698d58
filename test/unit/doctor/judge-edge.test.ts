import { describe, expect, it } from 'vitest';
import { parseListening } from '../../../src/lib/doctor/gather-listeners.ts';
import { type BalancerFacts, judgeBalancer } from '../../../src/lib/doctor/judge-balancer.ts';
import { type CaddyFacts, type CaddyUnit, judgeCaddy } from '../../../src/lib/doctor/judge-caddy.ts';
import { judgeDomains, type ServedDomain } from '../../../src/lib/doctor/judge-domains.ts';

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
  domains: [],
};
const now = new Date('2026-06-04T12:00:00Z');
const admin = caddy.admin;
const problems = (changes: Partial<CaddyFacts>): object[] =>
  judgeCaddy({ ...caddy, ...changes }, now).filter(({ level }) => level !== 'ok');
const ofUnit = (changes: Partial<CaddyUnit>): object[] => problems({ units: [{ ...unit, ...changes }] });

describe('an edge’s Caddy', () => {
  it('that answers and comes back by itself is told with its version', () => {
    expect(judgeCaddy(caddy, now)).toEqual([
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
    expect(judgeCaddy({ ...caddy, version: '2.8.4', delaysClose: true, balancer: 'caddy' }, now)[1]).toEqual({
      level: 'ok',
      what: '2.8.4 keeps WebSockets open for up to an hour when a domain or a backend changes',
    });
  });

  it('that does not answer is a failure, and another one where it is not there at all', () => {
    expect(problems({ error: 'cannot read', units: [] })).toEqual([
      expect.objectContaining({ level: 'failure', what: 'cannot read', where: admin }),
    ]);
    const { version: _, ...unknown } = caddy;
    expect(judgeCaddy({ ...unknown, error: 'cannot read', isInstalled: false, units: [] }, now)).toEqual([
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
    expect(judgeCaddy(withoutSystemd, now).filter(({ level }) => level !== 'ok')).toEqual([]);
  });

  it('whose kernel resets connections at a change is told of, unless that kernel knows no other way', () => {
    expect(problems({ migrates: false })).toEqual([
      expect.objectContaining({ level: 'warning', where: 'net.ipv4.tcp_migrate_req = 0' }),
    ]);
    const { migrates: _, ...oldKernel } = caddy;
    expect(judgeCaddy(oldKernel, now)[0]?.level).toBe('ok');
  });

  it('whose port another program has cannot serve', () => {
    expect(problems({ strangers: [{ port: 443, programs: [{ name: 'nginx', pid: 77 }] }] })).toEqual([
      {
        level: 'failure',
        what: 'nginx (pid 77) has the port',
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
    domains: [],
  };
  const where = facts.socket;

  it('is told with its version, and with the workers that a reload has left for their tunnels', () => {
    expect(judgeBalancer(facts)).toEqual([{ level: 'ok', what: 'HAProxy 2.6.12 answers', where }]);
    expect(judgeBalancer({ ...facts, oldWorkers: 2 })).toEqual([
      { level: 'ok', what: 'HAProxy 2.6.12 answers; 2 old workers still with tunnels', where },
    ]);
  });

  it('is told of for each domain whose backends do not serve, and what is to be reached', () => {
    const one = {
      domain: 'a.test',
      up: 0,
      down: ['10.0.0.5:20001', '[fd00::1]:20002'],
      healthPath: '/healthz',
    };
    const told = (change: object): unknown =>
      judgeBalancer({ ...facts, domains: [{ ...one, ...change }] })[0];
    const fix = 'can this machine reach 10.0.0.5:20001, [fd00::1]:20002?';
    expect(told({})).toEqual({
      level: 'failure',
      what: 'a.test: none of its 2 backends answers GET /healthz',
      fix,
    });
    expect(told({ healthPath: undefined })).toMatchObject({
      what: 'a.test: none of its 2 backends takes connections',
    });
    expect(told({ down: ['10.0.0.5:20001'] })).toMatchObject({
      what: 'a.test: its backend does not answer GET /healthz',
    });
    expect(told({ up: 1 })).toEqual({
      level: 'warning',
      what: 'a.test: 2 of its 3 backends do not answer GET /healthz',
      fix,
    });
    expect(told({ up: 3, down: [] })).toMatchObject({ level: 'ok' });
    // Nobody has published anything for it for a while.
    expect(told({ down: [] })).toMatchObject({ level: 'ok' });
    const many = judgeBalancer({ ...facts, domains: Array.from({ length: 40 }, () => one) });
    expect([many.length, many.at(-1)]).toEqual([
      11,
      { level: 'failure', what: '30 more domains have no backend that serves' },
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
    expect(judgeBalancer({ ...facts, error: 'no answer within 4s', isHung: true })[0]).toMatchObject({
      fix: 'systemctl restart reeve-balancer.service',
    });
  });
});

describe('the certificates of an edge’s domains', () => {
  const at = (days: number): Date => new Date(now.getTime() + days * 24 * 60 * 60_000);
  const valid = (from: number, to: number): ServedDomain[] => [
    { domain: 'a.test', kind: 'valid', from: at(from), to: at(to) },
  ];
  const journal = "journalctl -u caddy --since -1d -o cat | grep 'could not get certificate'";

  it('are told of where there are none, by cause', () => {
    const none = (domain: string): ServedDomain => ({ domain, kind: 'none', cause: 'Caddy has none' });
    expect(judgeDomains([none('a.test'), none('b.test')], now)).toEqual([
      { level: 'failure', what: 'no certificate for a.test, b.test: Caddy has none', fix: journal },
    ]);
    expect(judgeDomains([{ domain: '*.a.test', kind: 'never', reason: 'a wildcard' }], now)).toEqual([
      expect.objectContaining({ level: 'failure', what: 'no certificate for *.a.test: a wildcard' }),
    ]);
  });

  it.each<[string, ServedDomain[], object[]]>([
    ['of three months with a month left', valid(-60, 30), []],
    ['of half a day, as Caddy’s own are, with a third left', valid(-0.34, 0.16), []],
    [
      'of three months with six days left',
      valid(-84, 6),
      [
        {
          level: 'warning',
          what: expect.stringMatching(/^the certificate of a\.test ends at 2026-06-10T/),
          fix: journal,
        },
      ],
    ],
    [
      'that has ended',
      valid(-90, -1),
      [{ level: 'failure', what: expect.stringContaining('has ended at 2026-06-03T'), fix: journal }],
    ],
  ])('%s', (_, domains, told) => expect(judgeDomains(domains, now)).toEqual(told));
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
