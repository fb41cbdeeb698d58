import { describe, expect, it } from 'vitest';
import { findIngressProblems } from '../../../src/lib/release/ingress-rules.ts';
import { aWebService } from '../../support/builders.ts';

function domainProblems(domain: string): string[] {
  const service = aWebService({ ingress: { domain, port: 80, edge: 'e' }, healthCheck: null });
  return findIngressProblems(service).map(({ message }) => message);
}

describe('a domain', () => {
  it.each(['a.example.com', '*.example.com', 'A.Example.com', 'xn--bcher-kva.example'])(
    '%s is one',
    (domain) => expect(domainProblems(domain)).toEqual([]),
  );

  it.each([
    ['a b', ''],
    ['_none', ''],
    ['10.0.0.1', ': it is an address'],
    ['[::1]', ': it is an address'],
    ['https://foo.example.com', ': only the name, without https:// or port'],
    ['foo.example.com:443', ': only the name, without https:// or port'],
    ['bücher.example', ': write it as xn--bcher-kva.example'],
    ['a.*.example.com', ': a wildcard is one "*." in front'],
    ['a.example.com.', ': without the dot at its end'],
  ])('%s is none%s', (domain, hint) =>
    expect(domainProblems(domain)).toEqual([`"${domain}" is no domain name${hint}`]),
  );
});

describe('a path of a health check', () => {
  it.each([
    ['/healthz', []],
    ['/%zz', ['"/%zz" is no path of a URL']],
    ['//other', ['"//other" is no path of a URL']],
  ])('%s', (path, told) => {
    const healthCheck = { ...aWebService({}).healthCheck, path } as NonNullable<
      ReturnType<typeof aWebService>['healthCheck']
    >;
    const problems = findIngressProblems({ ingress: null, healthCheck });
    expect(problems.map(({ message }) => message)).toEqual(told);
  });
});
