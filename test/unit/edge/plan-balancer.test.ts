import { describe, expect, it } from 'vitest';
import { serverName } from '../../../src/lib/edge/balancer-file.ts';
import {
  type BalancerFacts,
  hasDrained,
  planBalancer,
  planWithoutReload,
} from '../../../src/lib/edge/plan-balancer.ts';
import { type Backend, backendName, type Route } from '../../../src/lib/edge/route.ts';
import type { ServerState } from '../../../src/lib/haproxy/parse.ts';

const one: Backend = { host: '10.0.0.1', port: 20_000 };
const two: Backend = { host: 'fd00::1', port: 20_001 };

describe('a plan for HAProxy', () => {
  it('has nothing to do where it serves the routes', () => {
    expect(plan({ routes: [route(one, two)], live: live({ one: 'ready', two: 'ready' }) })).toEqual([]);
    expect(plan({ routes: [], live: { structure: 'new', servers: new Map() } })).toEqual([]);
  });

  it('writes and reloads at a first run, and where domains or probes have changed', () => {
    const foreign = { structure: undefined, servers: new Map() };
    const old = { ...live({ one: 'ready' }), structure: 'old' };
    expect(plan({ live: foreign, isFileCurrent: false })).toEqual([
      'write haproxy.cfg: it runs with another file',
      'reload haproxy: it runs with another file',
    ]);
    const added = [route(one), { domain: '*.b.test', backends: [two] }];
    expect(plan({ live: old, routes: added, isFileCurrent: false })).toEqual([
      'write haproxy.cfg: *.b.test added',
      'reload haproxy: *.b.test added',
    ]);
    const probed = [{ ...route(one), healthPath: '/' }];
    expect(plan({ live: old, routes: probed, isFileCurrent: false })[1]).toBe(
      'reload haproxy: the health check of a.test has changed',
    );
    // Its last backend has gone; the domain stays for a while.
    expect(plan({ live: old, routes: [route()], isFileCurrent: false })[1]).toBe(
      'reload haproxy: its settings have changed',
    );
    expect(plan({ live: old, routes: [], isFileCurrent: false })[1]).toBe('reload haproxy: a.test removed');
  });

  it('reloads only, where an earlier tick has been killed after it had written', () => {
    const old = { ...live({}), structure: 'old' };
    expect(plan({ live: { ...old, servers: new Map() } })).toEqual(['reload haproxy: a.test added']);
    expect(plan({ live: old, routes: [route(one)] })).toEqual([
      'reload haproxy: it runs with an earlier file',
    ]);
  });

  it('writes the file again where only that is lost', () => {
    expect(plan({ live: live({ one: 'ready', two: 'ready' }), isFileCurrent: false })).toEqual([
      'write haproxy.cfg: it is not as it was written',
    ]);
  });

  it('writes, adds, and drains, in this order', () => {
    const routes = [route(two), { domain: '*.b.test', backends: [two] }];
    expect(plan({ routes, live: live({ one: 'ready' }), isFileCurrent: false })).toEqual([
      'write haproxy.cfg: its servers have changed',
      'add a.test [fd00::1]:20001: a node serves it',
      'add *.b.test [fd00::1]:20001: a node serves it',
      'drain a.test 10.0.0.1:20000: no node serves it any more',
    ]);
  });

  it('switches on what a killed tick has only added, and what has come back', () => {
    expect(plan({ live: live({ one: 'maint', two: 'drain' }) })).toEqual([
      'ready a.test 10.0.0.1:20000: it is switched off',
      'ready a.test [fd00::1]:20001: a node serves it again, and it is drained',
    ]);
  });

  it('deletes what is drained once nothing uses it', () => {
    const facts = { routes: [route()], live: live({ one: 'drain', two: 'maint' }) };
    expect(plan({ ...facts, busy: new Set(['a.test/10.0.0.1:20000', 'a.test/fd00::1:20001']) })).toEqual([]);
    expect(plan({ ...facts, busy: new Set(['a.test/10.0.0.1:20000']) })).toEqual([
      'delete a.test [fd00::1]:20001: nothing uses it any more',
    ]);
  });

  it('tells when it has to be known what is in use', () => {
    const asks = (states: Parameters<typeof live>[0], ...backends: Backend[]): boolean =>
      hasDrained({ routes: [route(...backends)], live: live(states) });
    expect(asks({ one: 'ready', two: 'ready' }, one)).toBe(false);
    expect(asks({ one: 'ready', two: 'drain' }, one, two)).toBe(false);
    expect(asks({ one: 'ready', two: 'drain' }, one)).toBe(true);
  });

  it('names the server and where it is for HAProxy', () => {
    const [step] = planBalancer(
      buildFacts({ routes: [{ domain: '*.b.test', backends: [two] }], live: live({}) }),
    );
    expect(step).toMatchObject({
      target: { backend: '_.b.test', server: 'fd00::1:20001', dial: '[fd00::1]:20001' },
    });
  });

  it('takes out by its own name what somebody has added by hand', () => {
    const servers = new Map([['a.test', new Map<string, ServerState>([['canary', 'drain']])]]);
    const [step] = planBalancer(buildFacts({ routes: [route()], live: { structure: 'new', servers } }));
    expect(step).toEqual({
      action: 'delete',
      subject: 'a.test canary',
      reason: 'nothing uses it any more',
      target: { backend: 'a.test', server: 'canary', dial: 'canary' },
    });
  });

  it('has servers of the domains that run already where a reload fails, and nothing for a file of others', () => {
    const routes = [route(two), { domain: 'b.test', backends: [two] }];
    const old = { ...live({ one: 'ready' }), structure: 'old' };
    const withoutReload = (running: BalancerFacts['live']): string[] =>
      planWithoutReload(buildFacts({ routes, live: running })).map(
        ({ action, subject }) => `${action} ${subject}`,
      );
    expect(withoutReload(old)).toEqual(['add a.test [fd00::1]:20001', 'drain a.test 10.0.0.1:20000']);
    expect(withoutReload({ ...old, structure: undefined })).toEqual([]);
  });

  it.each(mixtures())('comes to rest from $one and $two, cut after $done steps', ({ done, ...states }) => {
    for (const wish of [[], [one], [two], [one, two]]) {
      let end = follow(live(states), wish, done);
      for (let look = 0; look < 3; look += 1) end = follow(end, wish, Number.POSITIVE_INFINITY);

      const names = [...(end.servers.get('a.test') ?? [])].map(([name, state]) => `${name} ${state}`);
      expect(names.sort()).toEqual(wish.map((backend) => `${serverName(backend)} ready`).sort());
      expect(plan({ routes: [route(...wish)], live: end })).toEqual([]);
    }
  });
});

function route(...backends: Backend[]): Route {
  return { domain: 'a.test', backends };
}

function mixtures(): { one?: ServerState; two?: ServerState; done: number }[] {
  const states: (ServerState | undefined)[] = [undefined, 'ready', 'drain', 'maint'];
  const pairs = states.flatMap((first) =>
    states.map((second) => ({ ...(first && { one: first }), ...(second && { two: second }) })),
  );
  return [0, 1, 2].flatMap((done) => pairs.map((pair) => ({ ...pair, done })));
}

type Live = BalancerFacts['live'];

function live(states: { one?: ServerState; two?: ServerState }): Live {
  const servers = [
    ...(states.one === undefined ? [] : [[serverName(one), states.one] as const]),
    ...(states.two === undefined ? [] : [[serverName(two), states.two] as const]),
  ];
  return { structure: 'new', servers: new Map([[backendName('a.test'), new Map(servers)]]) };
}

function buildFacts(facts: Partial<BalancerFacts>): BalancerFacts {
  const { routes = [route(one, two)], isFileCurrent = true, busy = new Set<string>() } = facts;
  return {
    routes,
    structure: 'new',
    isFileCurrent,
    healthPaths: new Map(),
    live: facts.live ?? live({}),
    busy,
  };
}

function plan(facts: Partial<BalancerFacts>): string[] {
  return planBalancer(buildFacts(facts)).map(
    ({ action, subject, reason }) => `${action} ${subject}: ${reason}`,
  );
}

/** What HAProxy has after so many steps of the plan. */
function follow(from: Live, wish: Backend[], steps: number): Live {
  const servers = new Map(from.servers.get('a.test'));
  for (const step of planBalancer(buildFacts({ routes: [route(...wish)], live: from })).slice(0, steps)) {
    if (!('target' in step)) continue;
    if (step.action === 'delete') servers.delete(step.target.server);
    else servers.set(step.target.server, step.action === 'drain' ? 'drain' : 'ready');
  }
  return { structure: 'new', servers: new Map([['a.test', servers]]) };
}
