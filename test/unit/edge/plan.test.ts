import { describe, expect, it } from 'vitest';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { type EdgeDocument, emptyEdge } from '../../../src/lib/edge/documents.ts';
import type { EdgeFacts } from '../../../src/lib/edge/facts.ts';
import { readLiveRoutes } from '../../../src/lib/edge/live-routes.ts';
import { mergeShards } from '../../../src/lib/edge/merge.ts';
import { isSettled, planEdge } from '../../../src/lib/edge/plan.ts';
import { planHolds } from '../../../src/lib/edge/plan-holds.ts';
import type { Route } from '../../../src/lib/edge/route.ts';

const now = new Date('2026-06-04T03:00:00.000Z');
const secondsAgo = (seconds: number): string => new Date(now.getTime() - seconds * 1000).toISOString();
const caddy = { admin: 'http://127.0.0.1:2019', httpPort: 80, httpsPort: 443, issuer: 'acme' as const };

function aRoute(domain: string, ports: readonly number[], host = '10.0.0.1'): Route {
  return { domain, backends: ports.map((port) => ({ host, port })) };
}

const one = aRoute('a.example.com', [20001]);
const two = aRoute('a.example.com', [20001, 20002]);

function hold(change: Partial<Parameters<typeof planHolds>[0]>) {
  return planHolds({
    now,
    wanted: [one],
    live: [one],
    unit: 'backends',
    draining: new Set(),
    missingSince: {},
    ...change,
  });
}

describe('what is in force and in no shard any more', () => {
  it('is nothing where both are the same', () => {
    expect(hold({})).toEqual({ routes: [one], missingSince: {}, heldHosts: new Set() });
  });

  it('never delays what is new', () => {
    expect(hold({ wanted: [two], live: [one] })).toMatchObject({ routes: [two], missingSince: {} });
    expect(hold({ live: [] })).toMatchObject({ routes: [one] });
  });

  it('goes at once if its node says that it is draining', () => {
    const held = hold({ live: [two], draining: new Set(['10.0.0.1:20002']) });
    expect(held).toEqual({ routes: [one], missingSince: {}, heldHosts: new Set() });
  });

  it('stays at first where nobody has announced that it goes', () => {
    const subject = 'a.example.com 10.0.0.1:20002';
    expect(hold({ live: [two] })).toEqual({
      routes: [two],
      missingSince: { [subject]: now.toISOString() },
      heldHosts: new Set(['10.0.0.1']),
    });
    const since = { [subject]: secondsAgo(29) };
    expect(hold({ live: [two], missingSince: since })).toMatchObject({ routes: [two], missingSince: since });
  });

  it('goes once that has lasted 30 s', () => {
    const missingSince = { 'a.example.com 10.0.0.1:20002': secondsAgo(30) };
    expect(hold({ live: [two], missingSince })).toEqual({
      routes: [one],
      missingSince: {},
      heldHosts: new Set(),
    });
  });

  it('is forgotten as missing when it is back', () => {
    const missingSince = { 'a.example.com 10.0.0.1:20002': secondsAgo(20) };
    expect(hold({ wanted: [two], live: [two], missingSince })).toMatchObject({ missingSince: {} });
  });

  it('counts from now where the clock has gone back', () => {
    const missingSince = { 'a.example.com 10.0.0.1:20002': secondsAgo(-3600) };
    expect(hold({ live: [two], missingSince })).toMatchObject({
      routes: [two],
      missingSince: { 'a.example.com 10.0.0.1:20002': now.toISOString() },
    });
  });

  it('is a whole domain with all that served it', () => {
    expect(hold({ wanted: [], live: [two] })).toMatchObject({ routes: [two] });
    expect(hold({ wanted: [], live: [two], draining: new Set(['10.0.0.1:20001']) })).toMatchObject({
      routes: [aRoute('a.example.com', [20002])],
    });
  });

  it('is not kept at an address that serves another domain by now: it may be another service', () => {
    const moved = aRoute('b.example.com', [20002]);
    expect(hold({ wanted: [one, moved], live: [two] })).toEqual({
      routes: [one, moved],
      missingSince: {},
      heldHosts: new Set(),
    });
  });

  it('stays beside what another node serves of its domain by now', () => {
    const there = aRoute('a.example.com', [20001], '10.0.0.2');
    const held = hold({ wanted: [there], live: [one] });
    expect(held.routes).toEqual([{ ...one, backends: [...one.backends, ...there.backends] }]);
    expect([...held.heldHosts]).toEqual(['10.0.0.1']);
  });

  it('takes the new path of the probes at once', () => {
    const live = { ...two, healthPath: '/old' };
    const wanted = [{ ...one, healthPath: '/new' }];
    expect(hold({ wanted, live: [live] }).routes).toEqual([{ ...two, healthPath: '/new' }]);
  });

  it('is nothing of HAProxy’s where Caddy is to balance by itself again', () => {
    expect(hold({ live: [aRoute('a.example.com', [])] })).toMatchObject({ routes: [one], missingSince: {} });
  });

  it('is the domain alone where HAProxy has the backends', () => {
    const unit = 'domains' as const;
    const via = aRoute('a.example.com', []);
    expect(hold({ unit, live: [via] })).toMatchObject({ routes: [one], missingSince: {} });
    expect(hold({ unit, wanted: [], live: [via] })).toEqual({
      routes: [aRoute('a.example.com', [])],
      missingSince: { 'a.example.com': now.toISOString() },
      heldHosts: new Set(),
    });
    const missingSince = { 'a.example.com': secondsAgo(31) };
    expect(hold({ unit, wanted: [], live: [via], missingSince })).toMatchObject({
      routes: [],
      missingSince: {},
    });
  });
});

const shard = {
  node: 'app-1',
  fingerprint: 'f1',
  host: '10.0.0.1',
  backends: [{ domain: 'a.example.com', host: '10.0.0.1', port: 20001 }],
  rejected: [],
};

function factsOf(change: Partial<EdgeFacts> & { serves?: readonly Route[] } = {}): EdgeFacts {
  const { serves = [one], ...rest } = change;
  const text = JSON.stringify(buildCaddyDocument(serves, { caddy, closeDelay: false }));
  return {
    now,
    balancer: 'caddy',
    settings: '{}',
    contents: 'c1',
    gone: false,
    shards: [shard],
    wanted: mergeShards(rest.shards ?? [shard]),
    rejected: [],
    live: { kind: 'read', text, etag: undefined, textHash: text },
    stamp: 's1',
    isRemembered: true,
    healthPaths: new Map(),
    draining: new Set(),
    memory: emptyEdge,
    ...rest,
  };
}

/** What the tick before has left. */
function leftBy(facts: EdgeFacts): EdgeDocument {
  const { inputs, missingSince } = planEdge(facts);
  const textHash = facts.live.kind === 'read' ? facts.live.textHash : '';
  const settled = { inputs, textHash, stamp: 's1', domains: 1, backends: 1 };
  return { ...emptyEdge, settled, missingSince };
}

describe('a glance', () => {
  const facts = factsOf();
  const memory = leftBy(facts);

  it('is enough where shards, settings, Caddy and the balancer are as they were left', () => {
    expect(isSettled({ ...facts, memory })).toBe(true);
  });

  it.each<[string, Partial<EdgeFacts>]>([
    ['a first tick', { memory: emptyEdge }],
    ['other shards', { contents: 'c2' }],
    ['another setting', { settings: '{"issuer":"internal"}' }],
    [
      'another text of Caddy’s (L46)',
      { live: { kind: 'read', text: '', etag: undefined, textHash: 'boot' } },
    ],
    ['a Caddy that cannot be read (L48)', { live: { kind: 'unreadable', error: 'down' } }],
    ['a balancer that serves something else', { stamp: 's2' }],
    ['a balancer that cannot be asked', { stamp: undefined }],
    ['a store without shards', { gone: true }],
    [
      'a tick that had something to do, and left no stamp',
      {
        memory: { ...memory, settled: { inputs: '', textHash: '', domains: 1, backends: 1 } },
        stamp: undefined,
      },
    ],
  ])('is not enough after %s', (_what, change) => {
    expect(isSettled({ ...facts, memory, ...change })).toBe(false);
  });
});

describe('a tick', () => {
  it('looks closer the first time, and afterwards goes by what Caddy says (L44, L46)', () => {
    const facts = factsOf();
    expect(planEdge(facts)).toMatchObject({ push: 'ask', routes: [one], acknowledgeable: { 'app-1': 'f1' } });
    expect(planEdge({ ...facts, memory: leftBy(facts) })).toMatchObject({ push: 'no', routes: [one] });
  });

  it('looks closer where Caddy has another text, whatever was pushed last (L46, L47, R46)', () => {
    const facts = factsOf();
    const live = { kind: 'read' as const, text: '{"admin":{}}', etag: undefined, textHash: 'boot' };
    expect(planEdge({ ...facts, live, memory: leftBy(facts) }).push).toBe('ask');
  });

  it('pushes where Caddy cannot be read (L48)', () => {
    const facts = factsOf();
    const live = { kind: 'unreadable' as const, error: new Error('down') };
    expect(planEdge({ ...facts, live, memory: leftBy(facts) })).toMatchObject({ push: 'ask', routes: [one] });
  });

  it.each([
    ['a shard with another content', { contents: 'c2' }],
    ['another setting', { settings: '{"issuer":"internal"}' }],
  ])('looks closer after %s', (_what, change) => {
    const facts = factsOf();
    expect(planEdge({ ...factsOf(change), memory: leftBy(facts) }).push).toBe('ask');
  });

  it('does not acknowledge a node while one of its backends is kept in force', () => {
    const facts = factsOf({ serves: [two] });
    expect(planEdge(facts)).toMatchObject({ acknowledgeable: {}, routes: [two] });
    const held = { ...facts, memory: leftBy(facts) };
    expect(planEdge(held)).toMatchObject({ push: 'no', acknowledgeable: {} });
    const draining = new Set(['10.0.0.1:20002']);
    expect(planEdge({ ...held, draining })).toMatchObject({
      push: 'ask',
      acknowledgeable: { 'app-1': 'f1' },
      routes: [one],
    });
  });

  it('keeps the probes of a domain without backends, so that HAProxy need not be reloaded for a flap', () => {
    const healthPaths = new Map([['a.example.com', '/h']]);
    const facts = factsOf({ balancer: 'haproxy', wanted: [], contents: 'c2', healthPaths });
    expect(planEdge(facts).routes).toEqual([{ domain: 'a.example.com', backends: [], healthPath: '/h' }]);
  });

  it('acknowledges no shard that could not be read', () => {
    expect(planEdge(factsOf({ shards: [{ ...shard, fingerprint: '' }] })).acknowledgeable).toEqual({});
  });
});

describe('the routes in force', () => {
  it.each(['{env.HOME}', 'a b', '_none', 'A.example.com', 7])(
    'have nothing of another writer that no shard could ask for: %j',
    (host) => {
      const route = { match: [{ host: [host, 'a.example.com'] }], handle: [{ upstreams: [] }] };
      const text = JSON.stringify({ apps: { http: { servers: { launchpad: { routes: [route] } } } } });
      expect(readLiveRoutes(text)).toEqual([aRoute('a.example.com', [])]);
    },
  );

  it.each([
    ['caddy', undefined],
    ['haproxy', '127.0.0.1:7300'],
  ])('are read back from the document for %s', (_mode, via) => {
    const routes = [
      { ...two, healthPath: '/h' },
      { domain: '*.b.example.com', backends: [{ host: 'fd00::1', port: 20003 }] },
    ];
    const settings = { caddy, closeDelay: false, ...(via && { via }) };
    const live = readLiveRoutes(JSON.stringify(buildCaddyDocument(routes, settings)));
    expect(live).toEqual(via === undefined ? routes : routes.map(({ domain }) => ({ domain, backends: [] })));
  });

  it.each([
    '',
    '{',
    '[]',
    'null',
    '{"apps":{"http":{"servers":{"launchpad":{"routes":[null,{"match":7}]}}}}}',
    '{"apps":{"http":{"servers":{"other":{"routes":[]}}}}}',
  ])('are none in %j', (text) => {
    expect(readLiveRoutes(text)).toEqual([]);
  });
});
