// When two documents mean the same, and how an error of Caddy reads in status.json.
import { describe, expect, it } from 'vitest';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { describeCaddyError } from '../../../src/lib/edge/push.ts';
import { isSameDocument } from '../../../src/lib/edge/same-document.ts';
import { StepError } from '../../../src/lib/errors.ts';

const caddy = { admin: 'http://127.0.0.1:2019', httpPort: 80, httpsPort: 443, issuer: 'acme' as const };
const backends = [
  { host: '10.0.1.5', port: 20001 },
  { host: '10.0.1.6', port: 20001 },
];
const document = buildCaddyDocument(
  ['a.example.com', 'b.example.com', '*.example.com'].map((domain) => ({ domain, backends })),
  { caddy, closeDelay: false },
);

type Routes = { match: [{ host: string[] }]; handle: [{ upstreams: { dial: string }[] }] }[];
type Changeable = {
  admin: { origins: string[] };
  apps: { http: { servers: { launchpad: { routes: Routes } } } };
};

/** The text of the document after a change. */
function textOf(change: (copy: Changeable, routes: Routes) => void = () => {}): string {
  const copy = structuredClone(document) as Changeable;
  change(copy, copy.apps.http.servers.launchpad.routes);
  return JSON.stringify(copy);
}

/** As Caddy answers: other order of keys, blanks, a line's end. */
function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reverseKeys(member)]),
  );
}

describe('a document that Caddy shows', () => {
  it.each([
    ['as it was sent', textOf()],
    ['with other order of keys', `${JSON.stringify(reverseKeys(document), null, 2)}\n`],
    ['with other order of upstreams', textOf((_, routes) => routes[0]?.handle[0].upstreams.reverse())],
    ['with other order of origins', textOf(({ admin }) => admin.origins.reverse())],
    [
      'with other order of exact routes',
      textOf((_, routes) => routes.splice(0, 2, ...routes.slice(0, 2).reverse())),
    ],
  ])('is the same %s (L44, R44)', (_, live) => {
    expect(isSameDocument(live, document)).toBe(true);
  });

  it.each([
    ['with the wildcard first (R48)', textOf((_, routes) => routes.unshift(...routes.splice(2)))],
    ['with another upstream', textOf((_, routes) => routes[0]?.handle[0].upstreams.pop())],
    ['with a route twice', textOf((_, routes) => routes.push(...routes.slice(2)))],
    [
      'with a catch-all first (R48)',
      textOf((_, routes) => routes.unshift({ match: [{ host: [] }] } as never)),
    ],
    ['with nothing', 'null\n'],
    ['with its boot configuration (R46)', '{"admin":{"listen":"127.0.0.1:2019"}}\n'],
    ['in something that is no JSON', '<html></html>'],
  ])('is another %s', (_, live) => {
    expect(isSameDocument(live, document)).toBe(false);
  });
});

describe('an error of Caddy', () => {
  it('is cut after 200 characters, never within one (L49)', () => {
    const told = describeCaddyError(new StepError(`${'x'.repeat(198)}${'🚀'.repeat(10)}`));
    expect(told).toBe(`caddy /load: ${'x'.repeat(198)}🚀🚀`);
  });

  it('is told whole where it is short (L49)', () => {
    expect(describeCaddyError(new StepError('cannot load it: status 500'))).toBe(
      'caddy /load: cannot load it: status 500',
    );
  });
});
