// The files of the proxy: where they are, who may read them, and what becomes of what somebody else has done to them.
import { appendFileSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolvePaths } from '../../../src/lib/config/paths.ts';
import { writeMap } from '../../../src/lib/proxy/registry.ts';
import { prepareProxy, syncProxy } from '../../../src/lib/proxy/sync.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { makeProxy, readRegistry, startProxy, type TestProxy } from '../../support/proxy.ts';
import { askProxy } from '../../support/proxy-client.ts';
import { makeTempDir } from '../../support/temp.ts';

const local = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: 30_000 };

const ask = async ({ port }: TestProxy, instance: string): Promise<string> => {
  const { status, body } = await askProxy(port, `/i/${instance}/`);
  return status === 200 ? body.trim() : String(status);
};

describe('the files', () => {
  it('are in memory that is gone at boot, and open to HAProxy’s user to read (A73)', async () => {
    const before = process.umask(0o077);
    try {
      const proxy = await makeProxy();
      await prepareProxy(proxy.ctx, local);
      expect(dirname(proxy.at.directory)).toBe(proxy.paths.runDir);
      expect(statSync(proxy.at.directory).mode & 0o777).toBe(0o755);
      for (const file of [proxy.at.instancesMap, proxy.at.flagsMap, proxy.at.hostMap]) {
        expect(statSync(file).mode & 0o777).toBe(0o644);
      }
    } finally {
      process.umask(before);
    }
  });

  it('are open to read with all that is made on their way (A73)', async () => {
    const before = process.umask(0o077);
    try {
      const runDir = `${makeTempDir()}/deep/run`;
      await writeMap({ paths: resolvePaths({}, { REEVE_RUN: runDir }) }, `${runDir}/proxy/host.map`, '');
      for (const made of [dirname(runDir), runDir, `${runDir}/proxy`]) {
        expect([made, statSync(made).mode & 0o777]).toEqual([made, 0o755]);
      }
    } finally {
      process.umask(before);
    }
  });

  it('with keys that no command can name are mended all the same, and instances of them told', async () => {
    const proxy = await startProxy();
    await proxy.set('a', 20_001);
    await proxy.stop();
    appendFileSync(proxy.at.instancesMap, 'b;c 20002\nd\\e 20003\n"f 20004\n');
    await proxy.start();
    const { repaired } = await syncProxy(proxy.ctx, local);
    const [pid] = proxy.workers();
    expect(repaired).toEqual(
      ['b;c', 'd\\e', '"f'].map(
        (key) => `${JSON.stringify(key)} was there, which is no instance in worker ${pid}`,
      ),
    );
    expect((await askProxy(proxy.port, '/i/b;c/')).body).toBe('unknown instance: b;c\n');
    expect((await syncProxy(proxy.ctx, local)).repaired).toEqual([]);
  });

  it('with lines that are none keep no one else from being served', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    await proxy.stop();
    appendFileSync(proxy.at.instancesMap, '\0\u0001 x\nb\nc 99999\nd -1\ne 0\nf 80x\n# g 80\nh 80 80\n');
    await proxy.start();
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => ask(proxy, name)));
    expect(answers).toEqual(['it', '502', '502', '502', '502', '502', '502']);
  });

  it('that somebody has removed are made again from what HAProxy serves', async () => {
    const proxy = await startProxy();
    await proxy.set('a', 20_001);
    await proxy.set('b', 20_002);
    rmSync(proxy.at.directory, { recursive: true });
    await proxy.set('c', 20_003);
    expect(readRegistry(proxy)).toBe('a 20001\nb 20002\nc 20003\n');
    expect(proxy.warnings).toEqual(['the registry of the proxy was gone: taken from what HAProxy serves']);
    expect((await syncProxy(proxy.ctx, local)).repaired).toEqual([]);
  });
});
