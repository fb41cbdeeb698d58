import { describe, expect, it } from 'vitest';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { emptyEdge, type Settled } from '../../../src/lib/edge/documents.ts';
import { explainDomains, explainProbes, explainPush } from '../../../src/lib/edge/explain.ts';
import type { LiveCaddy } from '../../../src/lib/edge/facts.ts';
import { hashConfigText } from '../../../src/lib/edge/push.ts';
import type { Route } from '../../../src/lib/edge/route.ts';

const caddy = { admin: 'http://127.0.0.1:2019', httpPort: 80, httpsPort: 443, issuer: 'acme' as const };
const via = '127.0.0.1:7300';
const one = { host: '10.0.0.1', port: 20_000 };
const two = { host: '10.0.0.2', port: 20_000 };
const route = (domain: string, ...backends: (typeof one)[]): Route => ({ domain, backends });

function textOf(routes: readonly Route[], through?: string): string {
  const settings = { caddy, closeDelay: false, ...(through !== undefined && { via: through }) };
  return JSON.stringify(buildCaddyDocument(routes, settings));
}

type Case = { text: string; given?: string; balancer?: 'caddy' | 'haproxy'; lastReloadAt?: string | null };

/** `given`: what it had when a tick was content; as it has now if left out. */
function explain(routes: readonly Route[], change: Case): string {
  const { text, given = text, balancer = 'haproxy', lastReloadAt = '2026-06-04T12:00:00Z' } = change;
  const live: LiveCaddy = { kind: 'read', text, etag: undefined, textHash: hashConfigText(text) };
  const settled = { inputs: '', textHash: hashConfigText(given), domains: 0, backends: 0 } satisfies Settled;
  return explainPush({ live, balancer, memory: { settled, lastReloadAt } }, routes);
}

describe('the reason of a push', () => {
  const a = route('a.test', one);
  const b = route('b.test', one);
  const c = route('c.test', one);

  it.each<[string, readonly Route[], Case]>([
    ['b.test added', [a, b], { text: textOf([a], via) }],
    ['b.test added (and 1 more)', [c, a, b], { text: textOf([a], via) }],
    ['b.test added, a.test removed', [b], { text: textOf([a], via) }],
    ['settings have changed', [a], { text: textOf([a], '127.0.0.1:7301') }],
    ['settings have changed', [a], { text: textOf([a]), balancer: 'haproxy' }],
    ['settings have changed', [a], { text: textOf([a], via), balancer: 'caddy' }],
    [
      'backends of a.test have changed',
      [route('a.test', one, two)],
      { text: textOf([a]), balancer: 'caddy' },
    ],
    [
      'backends of a.test have changed',
      [{ ...a, healthPath: '/' }],
      { text: textOf([a]), balancer: 'caddy' },
    ],
    // Alone, Caddy has nothing of a domain without backends.
    ['b.test removed', [a, route('b.test')], { text: textOf([a, b]), balancer: 'caddy' }],
    ['the first look', [a], { text: textOf([b], via), lastReloadAt: null }],
    ['it no longer has what it was given', [a], { text: 'null\n', given: textOf([a], via) }],
    ['another writer has changed it', [a], { text: textOf([a]), given: textOf([a], via) }],
    [
      'it has something else than it was given: of another writer, or its own file',
      [a],
      { text: '{"apps":{"http":{"servers":{"srv0":{}}}}}', given: textOf([a], via) },
    ],
  ])('is %s', (reason, routes, change) => expect(explain(routes, change)).toBe(reason));

  it('is that nothing can be read, whatever is known', () => {
    const live: LiveCaddy = { kind: 'unreadable', error: new Error('gone') };
    expect(explainPush({ live, balancer: 'caddy', memory: emptyEdge }, [a])).toBe(
      'its configuration cannot be read',
    );
  });
});

describe('what is different', () => {
  it('is nothing where the same is there', () => {
    expect(explainDomains(['a.test', 'b.test'], ['b.test', 'a.test'])).toBeUndefined();
    expect(
      explainProbes(new Map([['a.test', '/']]), [{ ...route('a.test'), healthPath: '/' }]),
    ).toBeUndefined();
  });

  it('is a health check that came, went, or is another', () => {
    const before = new Map([
      ['a.test', '/a'],
      ['b.test', '/b'],
    ]);
    const routes = [{ ...route('a.test'), healthPath: '/other' }, route('b.test'), route('c.test')];
    expect(explainProbes(before, routes)).toBe('the health check of a.test has changed (and 1 more)');
  });
});
