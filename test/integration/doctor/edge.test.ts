// `reeve doctor` on an edge: the real Caddy and HAProxy, and what neither of them tells by itself.
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startBackend } from '../../support/backends.ts';
import { startEdge, type TestEdge } from '../../support/edge.ts';
import { freePort } from '../../support/ports.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function examine(edge: TestEdge, check: string): Promise<Finding[]> {
  const { findings } = JSON.parse((await edge.reeve('doctor', '--json')).stdout) as { findings: Finding[] };
  return findings.filter((finding) => finding.check === check);
}

const failures = (findings: readonly Finding[]): string[] =>
  findings.filter(({ level }) => level === 'failure').map(({ what }) => what);

describe('an edge whose backends are dead', () => {
  it('is told with the domain, and with what this machine has to reach', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.test', hostPort: backend.port, healthPath: '/healthz' }]);
    await edge.tick();
    // One check that is late takes a backend out for a while.
    await expect.poll(async () => failures(await examine(edge, 'balancer')), { timeout: 60_000 }).toEqual([]);
    await backend.stop();
    const told = async (): Promise<object[]> =>
      (await examine(edge, 'balancer')).map(({ check: _, ...finding }) => finding);
    await expect.poll(told, { timeout: 30_000 }).toEqual([
      {
        level: 'failure',
        what: 'a.test: its backend does not answer GET /healthz',
        fix: `can this machine reach 127.0.0.1:${backend.port}?`,
      },
    ]);
  });
});

describe('an edge whose domains lack certificates', () => {
  it('is told of each that has none, and of wildcards that can have none', async () => {
    // An authority that nobody answers for: no certificate can be had.
    const acmeDirectory = `http://127.0.0.1:${await freePort()}/directory`;
    const issuers = [{ issuer: 'internal' }, { issuer: 'acme', acmeDirectory }];
    const told: string[][] = [];
    for (const issuer of issuers) {
      const edge = await startEdge({ balancer: 'caddy' });
      edge.configure({ caddy: { ...edge.caddy.settings, ...issuer } });
      const backend = await startBackend('one');
      const domains = ['shop.reeve-doctor.example', '*.reeve-doctor.example'];
      edge.publish(
        'app-1',
        domains.map((domain) => ({ domain, hostPort: backend.port })),
      );
      await edge.tick();
      // Caddy signs in the background.
      if (issuer.issuer === 'internal')
        await expect
          .poll(async () => failures(await examine(edge, 'caddy')), { timeout: 30_000 })
          .toEqual([]);
      told.push(failures(await examine(edge, 'caddy')));
    }
    expect(told).toEqual([
      [],
      [
        'no certificate for shop.reeve-doctor.example: Caddy has none',
        expect.stringMatching(
          /^no certificate for \*\.reeve-doctor\.example: a wildcard needs a DNS challenge/,
        ),
      ],
    ]);
  });
});

describe('an edge in the store', () => {
  it('is not asked for a desired state', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    expect(await examine(edge, 'store')).toEqual([expect.objectContaining({ level: 'ok' })]);
  });

  it('that has become a node as well is told of those who still name its former id', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    edge.publish('app-1', [{ domain: 'a.test', hostPort: 20_001 }]);
    edge.publish('app-2', []);
    edge.configure({ role: ['app', 'edge'] });
    expect(failures(await examine(edge, 'store'))).toEqual([
      'nobody routes a.test: the services name "edge-1" as their edge, which is none',
    ]);
    edge.publish('app-1', []);
    expect(failures(await examine(edge, 'store'))).toEqual([]);
  });
});

describe('an edge whose parts do not run', () => {
  it('is told of each in one sentence, and where and how to mend it once', async () => {
    const edge = await startEdge({ balancer: 'haproxy' });
    const admin = `http://127.0.0.1:${await freePort()}`;
    edge.configure({
      caddy: { ...edge.caddy.settings, admin },
      haproxy: { address: edge.haproxy?.address, directory: '/nonexistent' },
    });
    const [caddy] = await examine(edge, 'caddy');
    expect(caddy).toMatchObject({ level: 'failure', what: 'nothing listens there', where: admin });
    expect(await examine(edge, 'balancer')).toEqual([
      expect.objectContaining({ what: 'it is not there', where: '/nonexistent/runtime.sock' }),
    ]);
  });

  it('is told of the program that has its port, by its file and its pid', async () => {
    const edge = await startEdge({ balancer: 'caddy' });
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
    onTestFinished(() => void server.close());
    edge.configure({ caddy: { ...edge.caddy.settings, httpPort: port } });
    expect(failures(await examine(edge, 'caddy'))).toContain(`node (pid ${process.pid}) has the port`);
  });
});
