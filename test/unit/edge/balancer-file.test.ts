import { describe, expect, it } from 'vitest';
import { parseHealthPaths, readStructure, renderBalancerFile } from '../../../src/lib/edge/balancer-file.ts';
import type { Route } from '../../../src/lib/edge/route.ts';
import { InternalError } from '../../../src/lib/errors.ts';
import { parseDescription } from '../../../src/lib/haproxy/parse.ts';

const backend = (host: string, port = 20_000) => ({ host, port });
const routes: Route[] = [
  {
    domain: 'b.example.com',
    backends: [backend('10.0.0.2'), backend('10.0.0.1', 20_001), backend('10.0.0.1')],
  },
  { domain: '*.example.com', backends: [backend('fd00::1')], healthPath: '/' },
  { domain: 'a.example.com', backends: [backend('10.0.0.1', 20_002)], healthPath: `/up?it's="#1\\$HOME%20` },
  { domain: 'empty.example.com', backends: [] },
];

describe('the file of HAProxy', () => {
  it('has a backend a domain, and a server a backend', async () => {
    const { text } = renderBalancerFile(routes);
    await expect(text).toMatchFileSnapshot('../../fixtures/golden/haproxy.cfg');
  });

  it('is the same whatever the order of routes and backends', () => {
    const turned = routes.toReversed().map((route) => ({ ...route, backends: route.backends.toReversed() }));
    expect(renderBalancerFile(turned)).toEqual(renderBalancerFile(routes));
  });

  it('tells the paths of its probes', () => {
    const paths = routes.flatMap(({ domain, healthPath }) => (healthPath ? [[domain, healthPath]] : []));
    const sorted = (pairs: Iterable<readonly string[]>): unknown[] => [...pairs].map(String).sort();
    expect(sorted(parseHealthPaths(renderBalancerFile(routes).text))).toEqual(sorted(paths as string[][]));
  });

  it('tells its structure by its description', () => {
    const { text, structure } = renderBalancerFile(routes);
    const description = /description "(.*)"/.exec(text)?.[1];
    expect(readStructure(description)).toBe(structure);
    expect(readStructure(parseDescription('description: my own file'))).toBeUndefined();
  });

  it('has another structure for other domains and probes, and none other for other servers', () => {
    const structure = (more: Partial<Route>): string => {
      const route = { domain: 'a.test', backends: [backend('10.0.0.1')], healthPath: '/up', ...more };
      return renderBalancerFile([route]).structure;
    };
    const same = [structure({}), structure({ backends: [] }), structure({ backends: [backend('10.0.0.2')] })];
    const others = [
      structure({ domain: 'b.test' }),
      structure({ healthPath: '/' }),
      structure({ domain: '*.test' }),
    ];
    expect(new Set(same).size).toBe(1);
    expect(new Set([...same, ...others]).size).toBe(4);
  });

  it.each<Partial<Route>>([
    { domain: 'a.test\n  server x' },
    { domain: 'a b' },
    { healthPath: '/up now' },
    { healthPath: '/up\n' },
    { backends: [backend('10.0.0.1 backup')] },
  ])('takes nothing that could be another line or word of it: %j', (part) => {
    const route = { domain: 'a.test', backends: [], ...part };
    expect(() => renderBalancerFile([route])).toThrow(InternalError);
  });
});
