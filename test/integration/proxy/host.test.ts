// Where the instances are: `commands.proxy_backend_host`, an address or a name.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { UnavailableError } from '../../../src/lib/errors.ts';
import { syncProxy } from '../../../src/lib/proxy/sync.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { makeCommandsNode } from '../../support/commands-node.ts';
import { freePort } from '../../support/ports.ts';
import { startProcess } from '../../support/programs.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import { askProxy } from '../../support/proxy-client.ts';
import { startRawBackend } from '../../support/raw-backend.ts';

const local = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: 30_000 };

const ask = async ({ port }: TestProxy, instance: string): Promise<string> => {
  const { status, body } = await askProxy(port, `/i/${instance}/`);
  return status === 200 ? body.trim() : String(status);
};

describe('the host of the instances', () => {
  it('may be a name, or an address of either kind, and changes without a restart (A13, A14, A18)', async () => {
    const proxy = await startProxy({ host: 'localhost' });
    const [four, six] = [await startBackendServer('four'), await startRawBackend('::1')];
    await proxy.set('four', four.backend.port);
    await proxy.set('six', six.port);
    expect([await ask(proxy, 'four'), await ask(proxy, 'six')]).toEqual(['four', '502']);
    const { repaired } = await syncProxy(proxy.ctx, { ...local, proxyBackendHost: '::1' });
    expect(repaired).toEqual([`backend_host had 127.0.0.1 instead of ::1 in worker ${proxy.workers()[0]}`]);
    expect([await ask(proxy, 'four'), (await askProxy(proxy.port, '/i/six/')).status]).toEqual(['502', 200]);
  });

  it.each([['127.0.0.1'], ['::']])(
    'and the port of the proxy, which listens on %s, lead no request back to it (A59)',
    async (address) => {
      const port = await freePort();
      const proxy = await startProxy({ env: { REEVE_PROXY_BIND: `${address}:${port}` } });
      const instance = await startBackendServer('it');
      await proxy.set('a', instance.backend.port);
      await proxy.set('self', port);
      const target = `${'/i/self'.repeat(4_000)}/i/a/`;
      const answers = await Promise.all(Array.from({ length: 20 }, () => askProxy(port, target)));
      expect(new Set(answers.map(({ status, body }) => `${status} ${body}`))).toEqual(
        new Set(['502 this proxy itself is instance: self\n']),
      );
      expect((await askProxy(port, '/i/a/')).body).toContain('it\n');
      // Every level of it would be one more.
      const connections = /^CumConns: (\d+)$/m.exec(await proxy.tell('show info'))?.[1];
      expect(Number(connections)).toBeLessThan(100);
    },
  );

  it('that cannot be looked up at the start serves nothing until it can', async () => {
    const proxy = await startProxy({ host: 'nowhere.invalid' });
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    expect(proxy.warnings).toEqual([
      expect.stringMatching(/cannot look up .*"nowhere.invalid".*nothing is served until it can$/),
    ]);
    expect(await ask(proxy, 'a')).toBe('502');
    await expect(syncProxy(proxy.ctx, { ...local, proxyBackendHost: 'nowhere.invalid' })).rejects.toThrow(
      UnavailableError,
    );
    await syncProxy(proxy.ctx, local);
    expect(await ask(proxy, 'a')).toBe('it');
  });

  it('that cannot be looked up later stays what it was', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    expect((await syncProxy(proxy.ctx, { ...local, proxyBackendHost: 'nowhere.invalid' })).repaired).toEqual(
      [],
    );
    expect(proxy.warnings).toEqual([expect.stringMatching(/"nowhere.invalid".*it stays 127.0.0.1$/)]);
    expect(await ask(proxy, 'a')).toBe('it');
  });

  it('holds nothing longer than a look-up may take, where no name server answers', async () => {
    const node = makeCommandsNode({ proxy_backend_host: 'instances.example.com' });
    const servers = join(node.root, 'resolv.conf');
    writeFileSync(servers, '127.0.0.1\n127.0.0.2\n127.0.0.3\n'.replaceAll(/^(?=.)/gm, 'nameserver '));
    // A network of its own, in which one socket takes all questions, and nobody reads them.
    const listen = `$^F = 9; socket(my $s, PF_INET, SOCK_DGRAM, 0); bind($s, sockaddr_in(53, INADDR_ANY)) or die $!; exec @ARGV`;
    const script = `ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && exec perl -MSocket -e '${listen}' "$@"`;
    const words = ['sh', servers, inject('reeveBin'), 'proxy', 'sync', '--write-only'];
    const startedAtMs = performance.now();
    const end = await startProcess('unshare', ['-mn', 'sh', '-c', script, ...words], node.env).ended;
    expect(end.stderr).toMatch(
      /"instances.example.com": no answer within 5s: nothing is served until it can$/m,
    );
    expect(end.status).toBe(0);
    // The resolver itself asks each of them twice, for five seconds each time.
    expect(performance.now() - startedAtMs).toBeLessThan(20_000);
  }, 60_000);
});
