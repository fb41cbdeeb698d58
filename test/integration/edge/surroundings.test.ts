// An edge whose machine is not as it should be: disks that are full, a store that is slow or not its own, an admin API that
// is none, a tick that meets another or is stopped.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { ShardBackend } from '../../../src/lib/cluster/wire.ts';
import { startBackend } from '../../support/backends.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { edgeId, startEdge, type TestEdge } from '../../support/edge.ts';
import { startNodeProgram, startProcess } from '../../support/programs.ts';

const modes = ['caddy', 'haproxy'] as const;
/** Between two pushes. */
const pauseMs = 2_000;

/** An edge that serves `a.test` from one backend; a second one is there for what is changed. */
async function startServing(options: Parameters<typeof startEdge>[0]): Promise<{
  edge: TestEdge;
  one: ShardBackend;
  two: ShardBackend;
}> {
  const edge = await startEdge(options);
  const [one, two] = (await Promise.all([startBackend('one'), startBackend('two')])).map(({ port }) => port);
  const backends = {
    one: { domain: 'a.test', hostPort: one as number },
    two: { domain: 'b.test', hostPort: two as number },
  };
  edge.publish('app-1', [backends.one]);
  await edge.tick();
  await fetchOnceServed(edge.caddy, 'a.test');
  return { edge, ...backends };
}

describe.each(modes)('an edge that balances by %s', (balancer) => {
  it.each(['state', 'cache'])('changes routes though the disk of its %s is full (O55)', async (name) => {
    const edge = await startEdge({ balancer });
    // HAProxy has its file below the cache already.
    const directory = join(edge.root, name === 'cache' ? 'cache/node' : name);
    mountSmallDisk(directory);
    const [one, two] = await Promise.all([startBackend('one'), startBackend('two')]);
    edge.publish('app-1', [{ domain: 'a.test', hostPort: one.port }]);
    await edge.tick();
    fillDisk(directory);
    edge.publish('app-1', [
      { domain: 'a.test', hostPort: one.port },
      { domain: 'b.test', hostPort: two.port },
    ]);
    const end = await edge.reeve('edge');
    expect((await fetchOnceServed(edge.caddy, 'b.test')).body).toContain('two');
    expect(edge.status().edgeRoutes).toHaveLength(2);
    if (name === 'state') {
      expect([end.status, end.stderr]).toEqual([1, expect.stringMatching(/cannot write ".*ENOSPC/)]);
      expect(edge.reeveJson().failing.map(({ message }) => message)).toEqual(
        expect.arrayContaining([expect.stringMatching(/^state: cannot write .*ENOSPC/)]),
      );
      expect(edge.memory().contents).toMatch(/./);
    } else expect(end.status).toBe(0);
    // With space again it is as if nothing had been.
    rmSync(join(directory, 'filler'));
    await edge.tick();
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do', domains: 2 });
    expect(edge.reeveJson()).toMatchObject({ converged: true, failing: [] });
  });

  it('serves what it reads from a store that it may not write to, and says so', async () => {
    const { edge, one, two } = await startServing({ balancer });
    const { applied } = edge.reeveJson().edge ?? {};
    edge.publish('app-1', [one, two]);
    spawnSync('mount', ['--bind', edge.storeDir, edge.storeDir]);
    onTestFinished(() => void spawnSync('umount', [edge.storeDir]));
    expect(spawnSync('mount', ['-o', 'remount,bind,ro', edge.storeDir]).status).toBe(0);
    const end = await edge.reeve('edge', '--json');
    expect([end.status === 0, end.json()]).toMatchObject([
      false,
      { outcome: 'partial', troubles: [{ subject: 'status', message: expect.stringContaining('EROFS') }] },
    ]);
    expect((await fetchOnceServed(edge.caddy, 'b.test')).body).toContain('two');
    expect(edge.reeveJson().edge?.applied).toEqual(applied);
    // What could not be published is, as soon as it can be: nothing else has changed.
    spawnSync('umount', [edge.storeDir]);
    await edge.tick();
    expect(edge.reeveJson().edge?.applied).not.toEqual(applied);
    expect(edge.status().edgeRoutes).toHaveLength(2);
  });

  it('keeps a second tick out with 75 and the holder’s name', async () => {
    const { edge } = await startServing({ balancer });
    const holder = startNodeProgram('hold-lock.ts', [join(edge.root, 'run/locks'), 'edge']);
    await holder.waitFor('holding');
    const end = await edge.reeve('edge');
    const told = `lock edge is held by pid ${holder.pid}, \`reeve edge\``;
    expect([end.status, end.stderr]).toEqual([75, expect.stringContaining(told)]);
    holder.tell('stop');
    await holder.ended;
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
  });
});

describe('an edge that is told to stop', () => {
  it('in the pause before a push ends with 143, blames nobody, and goes on at the next tick', async () => {
    const { edge, one, two } = await startServing({ balancer: 'caddy' });
    const { status, pushes } = await stopInPause(edge, [one, two]);
    expect(status).toBe(143);
    expect(await edge.caddy.changes()).toHaveLength(pushes);
    expect(edge.status().caddy.error).toBeNull();
    expect(edge.reeveJson()).toMatchObject({
      converged: false,
      failing: [{ message: 'tick: it was stopped before all was done' }],
    });
    expect((await edge.tick()).actions).toMatchObject([{ action: 'push' }]);
    expect((await fetchOnceServed(edge.caddy, 'b.test')).body).toContain('two');
    expect(edge.reeveJson()).toMatchObject({ converged: true, failing: [] });
  });
});

describe('an admin API that is none', () => {
  it.each<[string, () => Promise<number>, RegExp]>([
    ['another web server', startWebServer, /status 404/],
    ['a server that speaks something else', startBabbler, /not HTTP/],
    ['a server that takes connections and never answers', startMute, /no answer within 5s/],
  ])('like %s is told in the status within its deadline (L48, L49)', async (_what, start, told) => {
    const port = await start();
    const caddy = { admin: `http://127.0.0.1:${port}`, httpPort: 80, httpsPort: 443, issuer: 'internal' };
    const edge = await startEdge({ balancer: 'haproxy', cluster: { caddy } });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.test', hostPort: backend.port }]);
    const startedAt = performance.now();
    const end = await edge.reeve('edge', '--json');
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect([1, 69]).toContain(end.status);
    expect(edge.status().caddy.error).toMatch(/^caddy \/load: cannot /);
    expect(edge.status().caddy.error).toMatch(told);
    // HAProxy has its routes nonetheless.
    expect(end.json().actions.map(({ action }) => action)).toEqual(['write', 'reload']);
  });

  it('like a port that wants TLS is told, too (L49)', async () => {
    const { edge, one, two } = await startServing({ balancer: 'caddy' });
    const { httpsPort } = edge.caddy.settings;
    const config = JSON.parse(readFileSync(join(edge.root, 'etc/reeve.yaml'), 'utf8'));
    config.cluster.caddy.admin = `http://127.0.0.1:${httpsPort}`;
    writeFileSync(join(edge.root, 'etc/reeve.yaml'), JSON.stringify(config));
    edge.publish('app-1', [one, two]);
    const end = await edge.reeve('edge', '--json');
    expect([[1, 69].includes(end.status ?? 0), edge.status().caddy.error]).toEqual([
      true,
      expect.stringMatching(/^caddy \/load: cannot .*status 400/),
    ]);
    expect((await edge.caddy.fetch('a.test')).status).toBe(200);
  });
});

describe('a store that does not answer', () => {
  it('ends the look at it after half a minute, and the run says so', async () => {
    const { edge } = await startServing({ balancer: 'caddy' });
    const shard = join(edge.storeDir, 'nodes', edgeId, 'upstream/app-1.json');
    const strace = ['-f', '-qq', '-o', '/dev/null', '-P', shard, '-e', 'trace=openat'];
    const slow = [...strace, '-e', 'inject=openat:delay_enter=40s', inject('reeveBin'), 'edge'];
    const tick = startProcess('strace', slow, edge.environment);
    const runFile = join(edge.root, 'state/runs/edge.json');
    await expect
      .poll(() => JSON.parse(readFileSync(runFile, 'utf8')).error, { timeout: 60_000, interval: 200 })
      .toMatch(/^cannot read from file:.*: no answer within 30s$/);
    expect((await edge.caddy.fetch('a.test')).status).toBe(200);
    expect((await tick.ended).status).toBe(69);
    expect(edge.reeveJson().converged).toBe(false);
    expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
    expect(edge.reeveJson()).toMatchObject({ converged: true, failing: [] });
  });
});

describe('the last line of a look', () => {
  it('says what is not in force, and never that there is nothing to do beside a trouble', async () => {
    const { edge, one, two } = await startServing({ balancer: 'haproxy' });
    const lastLine = async (...flags: string[]): Promise<string | undefined> =>
      (await edge.reeve('edge', ...flags)).stdout.trimEnd().split('\n').at(-1);
    expect(await lastLine()).toMatch(/^nothing to do: 1 domain, 1 backend$/);
    edge.publish('app-1', [one, { domain: 'a b', hostPort: 20_001 }, two]);
    expect(await lastLine()).toBe('2 domains, 2 backends; 1 trouble, see above');
    expect(await lastLine('--dry-run')).toBe('2 domains, 2 backends; 1 trouble, see above');
    await edge.haproxy?.kill();
    edge.publish('app-1', [one]);
    expect(await lastLine()).toMatch(/; not in force: balancer(, caddy)?$/);
    await edge.caddy.kill();
    expect(await lastLine()).toMatch(/; not in force: balancer, caddy$/);
  });
});

describe('a store that is not mounted', () => {
  it('is told once, and what is served goes on', async () => {
    const { edge } = await startServing({ balancer: 'caddy' });
    renameSync(edge.storeDir, `${edge.storeDir}.gone`);
    const end = await edge.reeve('edge');
    const cause = 'there is no such directory: is it mounted? (cluster.store)';
    expect([end.status, end.stderr]).toEqual([69, `reeve: cannot use store "${edge.storeDir}": ${cause}\n`]);
    expect((await edge.caddy.fetch('a.test')).status).toBe(200);
  });
});

describe('a host without Docker', () => {
  it.each(modes)('is never asked for it by an edge that balances by %s (L11)', async (balancer) => {
    const docker = { socket: '/nonexistent/docker.sock' };
    const edge = await startEdge({ balancer, cluster: { docker } });
    const backend = await startBackend('one');
    edge.publish('app-1', [{ domain: 'a.test', hostPort: backend.port }]);
    const trace = join(edge.root, 'trace');
    const strace = ['-f', '-qq', '-s', '4096', '-o', trace, '-e', 'trace=%file,connect'];
    const env = { ...edge.environment, DOCKER_HOST: `unix://${docker.socket}` };
    const end = await startProcess('strace', [...strace, inject('reeveBin'), 'edge'], env).ended;
    expect([end.status, (await fetchOnceServed(edge.caddy, 'a.test')).status]).toEqual([0, 200]);
    const calls = readFileSync(trace, 'utf8').split('\n');
    expect(calls.filter((call) => call.includes('docker.sock'))).toEqual([]);
    expect(calls.some((call) => call.includes('connect(') && call.includes('127.0.0.1'))).toBe(true);
    expect(existsSync(docker.socket)).toBe(false);
  });
});

/**
 * How a tick ends that is stopped in the pause before its push, and how many pushes there were before it. Once more, with another
 * domain, where the machine stood still until that pause was over.
 */
async function stopInPause(
  edge: TestEdge,
  backends: readonly [ShardBackend, ShardBackend],
): Promise<{ status: number | null; pushes: number }> {
  for (let tries = 1; ; tries += 1) {
    const pushes = (await edge.caddy.changes()).length;
    const reads = (): number => edge.caddy.log().split('"method":"GET"').length;
    const before = reads();
    const pushedAtMs = Date.now();
    rewindPush(edge);
    edge.publish('app-1', [...backends, { ...backends[1], domain: `more${tries}.test` }]);
    const tick = startProcess(inject('reeveBin'), ['edge', '--json'], edge.environment);
    await expect.poll(reads, { timeout: 20_000 }).toBeGreaterThan(before);
    tick.child.kill('SIGTERM');
    const { status } = await tick.ended;
    if (Date.now() - pushedAtMs < pauseMs || tries === 5) return { status, pushes };
  }
}

/** As if it had pushed just now: the next push has to wait. */
function rewindPush(edge: TestEdge): void {
  const path = join(edge.root, 'state/edge.json');
  const document = { ...JSON.parse(readFileSync(path, 'utf8')), lastReloadAt: new Date().toISOString() };
  writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`);
}

function mountSmallDisk(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const mount = ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', directory];
  const mounted = spawnSync('mount', mount, { encoding: 'utf8' });
  if (mounted.status !== 0) throw new Error(`cannot mount a small disk: ${mounted.stderr}`);
  onTestFinished(() => void spawnSync('umount', [directory]));
}

function fillDisk(directory: string): void {
  const { stderr } = spawnSync('dd', ['if=/dev/zero', `of=${join(directory, 'filler')}`, 'bs=1k'], {
    encoding: 'utf8',
  });
  if (!stderr.includes('No space left')) throw new Error(`the disk is not full: ${stderr}`);
}

async function startWebServer(): Promise<number> {
  return await listen(
    createHttpServer((_, answer) => {
      answer.writeHead(404, { 'content-type': 'text/html' });
      answer.end('<h1>Not Found</h1>');
    }),
  );
}

async function startBabbler(): Promise<number> {
  return await listen(createServer((socket) => void socket.on('error', () => {}).end('220 mail ready\r\n')));
}

async function startMute(): Promise<number> {
  return await listen(createServer((socket) => void socket.on('error', () => {})));
}

async function listen(server: Server): Promise<number> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => void sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
