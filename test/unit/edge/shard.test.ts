import { describe, expect, it } from 'vitest';
import { shardFingerprint } from '../../../src/lib/cluster/fingerprint.ts';
import type { UpstreamShard } from '../../../src/lib/cluster/wire.ts';
import { mergeShards } from '../../../src/lib/edge/merge.ts';
import { findDoubles, parseShard } from '../../../src/lib/edge/shard.ts';

function aShard(change: Partial<UpstreamShard> = {}): UpstreamShard {
  return {
    nodeId: 'app-1',
    privateIp: '10.0.1.5',
    updatedAt: '2026-06-04T03:00:00.000Z',
    backends: [{ domain: 'app.example.com', hostPort: 20001, healthPath: '/health' }],
    ...change,
  };
}

const parse = (change: object) => parseShard(JSON.stringify({ ...aShard(), ...change }), 'app-1');
const backend = { domain: 'app.example.com', host: '10.0.1.5', port: 20001, healthPath: '/health' };

describe('a shard', () => {
  it('is read with the fingerprint that its node knows it by', () => {
    expect(parse({})).toEqual({
      node: 'app-1',
      fingerprint: shardFingerprint(aShard()),
      host: '10.0.1.5',
      backends: [backend],
      rejected: [],
    });
  });

  it('is known by the published golden fingerprint (L182)', () => {
    const shard = parse({});
    expect(shard.fingerprint).toBe('bd9bc42fa166a15f88d0a1834a08a92699827820df6d24597a5697edf5647fdb');
  });

  it('may be empty, and still has a fingerprint to acknowledge', () => {
    expect(parse({ backends: [] })).toMatchObject({ backends: [], rejected: [] });
    expect(parse({ backends: [] }).fingerprint).toMatch(/^[0-9a-f]{64}$/);
  });

  it('takes a name in capitals for the same name', () => {
    expect(parse({ backends: [{ domain: 'App.Example.COM', hostPort: 20001 }] }).backends).toEqual([
      { domain: 'app.example.com', host: '10.0.1.5', port: 20001 },
    ]);
  });

  it('may have encoded names', () => {
    const { backends } = parse({ backends: [{ domain: 'xn--BCHER-kva.example.com', hostPort: 20001 }] });
    expect(backends).toMatchObject([{ domain: 'xn--bcher-kva.example.com' }]);
  });

  it.each<[string, unknown, string, string]>([
    [
      'a host name with a blank',
      { domain: 'a b.example.com', hostPort: 20002 },
      'a b.example.com:20002',
      'it is no domain name',
    ],
    ['a host name with a newline', { domain: 'a\nb', hostPort: 20002 }, 'a?b:20002', 'it is no domain name'],
    [
      'a name that Caddy would take for a placeholder',
      { domain: '{env.HOME}', hostPort: 1 },
      '{env.HOME}:1',
      'it is no domain name',
    ],
    [
      'an encoded label that nobody can read',
      { domain: '*.XN--zz.example.com', hostPort: 20002 },
      '*.XN--zz.example.com:20002',
      'it is no domain name',
    ],
    ['an empty name', { domain: '', hostPort: 20002 }, ':20002', 'it is no domain name'],
    ['a wildcard inside', { domain: 'a.*.com', hostPort: 20002 }, 'a.*.com:20002', 'it is no domain name'],
    ['a catch-all', { domain: '*', hostPort: 20002 }, '*:20002', 'it is no domain name'],
    [
      'a name of the balancer’s own',
      { domain: '_none', hostPort: 20002 },
      '_none:20002',
      'it is no domain name',
    ],
    [
      'what a wildcard’s backend is called',
      { domain: '_.example.com', hostPort: 20002 },
      '_.example.com:20002',
      'it is no domain name',
    ],
    ['no domain at all', { hostPort: 20002 }, 'a backend without a domain', 'it is no domain name'],
    ['nothing', null, 'a backend without a domain', 'it is no domain name'],
    [
      'port 0',
      { domain: 'b.example.com', hostPort: 0 },
      'b.example.com:0',
      'port 0 is not between 1 and 65535',
    ],
    [
      'a port out of range',
      { domain: 'b.example.com', hostPort: 65_536 },
      'b.example.com:65536',
      'port 65536 is not between 1 and 65535',
    ],
    [
      'a port that is text',
      { domain: 'b.example.com', hostPort: '80' },
      'b.example.com:80',
      'port "80" is not between 1 and 65535',
    ],
    [
      'half a port',
      { domain: 'b.example.com', hostPort: 1.5 },
      'b.example.com:1.5',
      'port 1.5 is not between 1 and 65535',
    ],
    [
      'a domain that another service of the node has, with another health check',
      { domain: 'app.example.com', hostPort: 20002, healthPath: '/other' },
      'app.example.com:20002',
      'another service of the node claims the domain, too',
    ],
  ])('has %s refused by name, and the rest served', (_what, entry, subject, reason) => {
    const shard = parse({ backends: [...aShard().backends, entry] });
    expect([shard.backends, shard.rejected]).toEqual([[backend], [{ node: 'app-1', subject, reason }]]);
  });

  // The last ones make Caddy refuse its whole configuration.
  it.each(['/a b', 'up', '', 7, null, '/100%', '/%zz', '//[::1', '//a:b/'])(
    'is served without probes where its health path is none: %j',
    (healthPath) => {
      const shard = parse({ backends: [{ domain: 'b.example.com', hostPort: 20002, healthPath }] });
      expect(shard.backends).toEqual([{ domain: 'b.example.com', host: '10.0.1.5', port: 20002 }]);
      expect(shard.rejected).toEqual([
        {
          node: 'app-1',
          subject: 'b.example.com:20002',
          reason: `${JSON.stringify(healthPath)} is no path of a URL: it is served without probes`,
        },
      ]);
    },
  );

  it.each([[''], ['app-1'], ['0.0.0.0'], ['::'], [undefined], [7], ['10.0.0.1:80']])(
    'with backends at address %j tells nothing: there is nothing to dial',
    (privateIp) => {
      const told = JSON.stringify(privateIp) ?? 'nothing';
      const reason = `its privateIp ${told} is no address to reach the node at`;
      expect(() => parse({ privateIp })).toThrow(new TypeError(reason));
      expect(parse({ privateIp, backends: [] })).toMatchObject({ backends: [], rejected: [] });
    },
  );

  it.each([
    ['{"nodeId": "app-1", "backends": [', 'it is not whole JSON'],
    ['', 'it is not whole JSON'],
    ['[]', 'it is no object'],
    ['{"nodeId": "app-1"}', 'it has no list of backends'],
    [JSON.stringify(aShard({ nodeId: 'app-2' })), 'it says that it is node "app-2": two writers share it'],
  ])('that is %j tells nothing', (text, reason) => {
    expect(() => parseShard(text, 'app-1')).toThrow(new TypeError(reason));
  });
});

describe('a shard that is nested without end', () => {
  const endless = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const head = '"nodeId":"app-1","privateIp":"10.0.1.5"';

  it.each([
    ['in its node', `{"nodeId":${endless},"privateIp":"10.0.1.5","backends":[]}`],
    ['in its address', `{"nodeId":"app-1","privateIp":${endless},"backends":[]}`],
    ['in a port', `{${head},"backends":[{"domain":"a.example.com","hostPort":${endless}}]}`],
    ['in a field of no use', `{${head},"backends":[{"domain":"a.example.com","hostPort":1,"x":${endless}}]}`],
  ])('%s tells nothing', (_where, text) => {
    expect(() => parseShard(text, 'app-1')).toThrow(new TypeError('it is nested more than 32 deep'));
  });
});

describe('shards of several nodes', () => {
  const first = parseShard(JSON.stringify(aShard()), 'app-1');
  const other = (change: Partial<UpstreamShard>) =>
    parseShard(JSON.stringify(aShard({ nodeId: 'app-2', ...change })), 'app-2');

  it('are one route a domain, with the first health path and backends in order', () => {
    const second = other({
      privateIp: '10.0.1.4',
      backends: [
        { domain: 'app.example.com', hostPort: 20009, healthPath: '/later' },
        { domain: 'app.example.com', hostPort: 20003, healthPath: '/later' },
        { domain: 'a.example.com', hostPort: 20004 },
      ],
    });
    expect(mergeShards([first, second])).toEqual([
      { domain: 'a.example.com', backends: [{ host: '10.0.1.4', port: 20004 }] },
      {
        domain: 'app.example.com',
        healthPath: '/health',
        backends: [
          { host: '10.0.1.4', port: 20003 },
          { host: '10.0.1.4', port: 20009 },
          { host: '10.0.1.5', port: 20001 },
        ],
      },
    ]);
  });

  it('have a health path from whichever tells one', () => {
    const silent = parse({ backends: [{ domain: 'app.example.com', hostPort: 20001 }] });
    const [route] = mergeShards([silent, other({ privateIp: '10.0.1.6' })]);
    expect(route?.healthPath).toBe('/health');
  });

  it('make no route of nothing', () => {
    expect(mergeShards([parse({ backends: [] })])).toEqual([]);
  });

  it('that claim one address are refused from the second on', () => {
    const { shards, rejected } = findDoubles([first, other({})]);
    expect(shards.map(({ backends }) => backends.length)).toEqual([1, 0]);
    expect(rejected).toEqual([
      {
        node: 'app-2',
        subject: 'app.example.com 10.0.1.5:20001',
        reason: 'node app-1 has it as its own backend: two writers claim one address',
      },
    ]);
  });

  it('may have several domains on one port of one node', () => {
    const both = parse({
      backends: [
        { domain: 'a.example.com', hostPort: 20001 },
        { domain: 'b.example.com', hostPort: 20001 },
      ],
    });
    expect(findDoubles([both])).toEqual({ shards: [both], rejected: [] });
  });
});
