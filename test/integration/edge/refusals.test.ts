// What of the shards cannot be served is refused by name; the rest is served.
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startBackend } from '../../support/backends.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { edgeId, startEdge } from '../../support/edge.ts';

describe.each(['caddy', 'haproxy'] as const)('an edge that balances by %s', (balancer) => {
  it('refuses by name what cannot be served, and serves the rest', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    const good = { domain: 'a.example.com', hostPort: backend.port };
    edge.publish('app-1', [
      good,
      { domain: 'a b', hostPort: 20001 },
      { domain: 'c.example.com', hostPort: 70_000 },
    ]);
    edge.publish('app-2', [good]);
    edge.publish('app-3', [{ domain: 'd.example.com', hostPort: 20001 }], { privateIp: '' });
    edge.writeShard('app-4', '{"nodeId":');
    edge.publish('app-5', [{ domain: 'e.example.com', hostPort: 20001 }], { nodeId: 'app-6' });
    const partial = await edge.tick(1);
    expect(partial.outcome).toBe('partial');
    expect(partial.troubles.map(({ subject, message }) => `${subject}: ${message}`)).toEqual([
      'app-1 a b:20001: it is no domain name',
      'app-1 c.example.com:70000: port 70000 is not between 1 and 65535',
      'app-3 shard: its privateIp "" is no address to reach the node at',
      'app-4 shard: it is not whole JSON',
      'app-5 shard: it says that it is node "app-6": two writers share it',
      `app-2 a.example.com 127.0.0.1:${backend.port}: node app-1 has it as its own backend: two writers claim one address`,
    ]);
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).body).toContain('one GET /');
    expect(edge.status()).toMatchObject({
      caddy: { error: null },
      edgeRoutes: [{ domain: 'a.example.com' }],
    });
    expect(edge.reeveJson().edge?.rejected).toHaveLength(6);
    // What keeps being wrong is told again, and nothing is done about it.
    expect(await edge.tick(1)).toMatchObject({ outcome: 'failed', actions: [] });
  });

  it('is not kept from other routes by a shard whose probes Caddy would refuse, or that is no text', async () => {
    const edge = await startEdge({ balancer });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port, healthPath: '/100%' }]);
    edge.publish('app-2', [{ domain: 'b.example.com', hostPort: 20001 }], { privateIp: 'fe80::1%eth0' });
    writeFileSync(join(edge.storeDir, 'nodes', edgeId, 'upstream/app-3.json'), Buffer.of(0xff, 0xfe, 0));
    edge.writeShard('app-4', `{"nodeId":${'['.repeat(50_000)}${']'.repeat(50_000)},"backends":[]}`);
    // For a name that it cannot decode, too.
    edge.publish('app-5', [{ domain: 'xn--zz.example.com', hostPort: 20001 }], { privateIp: '127.0.0.2' });
    const partial = await edge.tick(1);
    expect([partial.outcome, partial.domains]).toEqual(['partial', 1]);
    expect(partial.troubles.map(({ message }) => message)).toEqual([
      '"/100%" is no path of a URL: it is served without probes',
      'its privateIp "fe80::1%eth0" is no address to reach the node at',
      expect.stringMatching(/is not UTF-8 text$/),
      'it is nested more than 32 deep',
      'it is no domain name',
    ]);
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).body).toContain('one');
  });
});

describe('a document that Caddy cannot start with', () => {
  it('is not sent again at each look: Caddy goes on listening with what it has refused', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    const backend = await startBackend('one');
    const occupant = createServer().listen(edge.caddy.settings.httpPort, '0.0.0.0');
    await once(occupant, 'listening');
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    const first = await edge.tick(1);
    expect(first.troubles).toMatchObject([{ subject: 'caddy', message: expect.stringContaining('in use') }]);
    const pushes = (await edge.caddy.changes()).length;
    const second = await edge.tick(1);
    expect(second.troubles[0]?.message).toMatch(
      /in use.*; not sent again before .*: once it is solved, restart Caddy/,
    );
    expect((await edge.caddy.changes()).length).toBe(pushes);
    occupant.close();
    const memory = edge.memory();
    const longAgo = new Date(Date.now() - 120_000).toISOString();
    writeFileSync(
      join(edge.root, 'state/edge.json'),
      JSON.stringify({ version: 1, ...memory, refused: { ...memory.refused, at: longAgo } }),
    );
    await edge.caddy.restart();
    expect(await edge.tick()).toMatchObject({ troubles: [], actions: [{ action: 'push' }] });
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).status).toBe(200);
    expect(edge.memory().refused).toBeNull();
  });
});

describe('a memory that cannot be used', () => {
  it.each([
    ['of a newer reeve', (path: string) => writeFileSync(path, '{"version":99}')],
    ['that is a directory', (path: string) => mkdirSync(path)],
  ])('%s keeps no route from being served', async (_what, spoil) => {
    const edge = await startEdge({ balancer: 'caddy' });
    const backend = await startBackend('one');
    for (const name of ['edge.json', 'edge-shards.json']) {
      mkdirSync(join(edge.root, 'state'), { recursive: true });
      spoil(join(edge.root, 'state', name));
    }
    edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
    await edge.reeve('edge');
    expect((await fetchOnceServed(edge.caddy, 'a.example.com')).status).toBe(200);
    expect(edge.status().edgeRoutes).toHaveLength(1);
  });
});
