// `reeve proxy ...` as people and units call it: words, exit codes, documents.
import { describe, expect, it } from 'vitest';
import { drainProxy, endDrain } from '../../../src/lib/proxy/drain.ts';
import { removeInstance } from '../../../src/lib/proxy/set.ts';
import { type CommandsMachine, makeCommandsMachine } from '../../support/agenda/machine.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { alterMaster } from '../../support/faulty-master.ts';
import { readRegistry, startProxy, type TestProxy } from '../../support/proxy.ts';
import { askProxy, openTunnel } from '../../support/proxy-client.ts';

async function start(commands: Readonly<Record<string, unknown>> = {}): Promise<{
  machine: CommandsMachine;
  proxy: TestProxy;
}> {
  const machine = await makeCommandsMachine({ commands });
  return { machine, proxy: await startProxy({ runDir: `${machine.root}/run` }) };
}

describe('reeve proxy', () => {
  it('sets, gets, lists and removes (A72, A76, A77)', async () => {
    const { machine, proxy } = await start();
    const instance = await startBackendServer('it');
    const port = instance.backend.port;
    const say = async (...words: string[]): Promise<[number | null, string]> => {
      const { status, stdout } = await machine.reeve('proxy', ...words);
      return [status, stdout];
    };
    expect(await say('get', 'blog')).toEqual([1, 'blog is not registered\n']);
    expect(await say('set', 'blog', String(port))).toEqual([0, `blog is at port ${port}\n`]);
    expect((await askProxy(proxy.port, '/i/blog/')).body).toBe('it\n');
    expect(await say('get', 'blog')).toEqual([0, `${port}\n`]);
    const listed = await machine.reeve('proxy', 'list', '--json');
    expect(JSON.parse(listed.stdout)).toEqual({
      ...{ version: 1, command: 'proxy list', outcome: 'done' },
      ...{ instances: [{ instance: 'blog', port }], draining: false, running: true, activeTunnels: 0 },
      workers: [{ pid: proxy.workers()[0], old: false, tunnels: 0 }],
    });
    expect(await say('sync')).toEqual([0, 'HAProxy has 1 instance\n']);
    expect(await say('remove', 'blog')).toEqual([0, `blog is gone, before port ${port}\n`]);
    expect((await askProxy(proxy.port, '/i/blog/')).status).toBe(502);
  });

  it.each([
    [65, ['set', '..', '80'], 'cannot use instance ".."'],
    [65, ['set', 'a', '0'], 'cannot use port "0"'],
    [65, ['get', 'a/b'], 'cannot use instance "a/b"'],
    [64, ['set', 'a'], "missing required argument 'port'"],
  ] as const)('answers %i to %j', async (status, words, told) => {
    const machine = await makeCommandsMachine();
    const end = await machine.reeve('proxy', ...words);
    expect([end.status, end.stderr]).toEqual([status, expect.stringContaining(told)]);
  });

  it('says of a HAProxy that does not answer what stands already, and what brings it (A72)', async () => {
    const { machine, proxy } = await start();
    await proxy.set('b', 20_002);
    const [worker = 0] = proxy.workers();
    process.kill(worker, 'SIGSTOP');
    const told = '; `reeve proxy sync` brings it, or the next heartbeat\n';
    const set = await machine.reeve('proxy', 'set', 'a', '20001');
    expect([set.status, set.stderr]).toEqual([69, expect.stringContaining(told)]);
    expect(set.stderr).toContain('cannot tell HAProxy that a is at port 20001, as it is registered: ');
    const hasty = () => ({ ...proxy.ctx, signal: AbortSignal.timeout(4_000) });
    await expect(removeInstance(hasty(), 'b')).rejects.toThrow(
      'cannot tell HAProxy that b is gone, as it is from the registry: ',
    );
    await expect(endDrain(hasty())).rejects.toThrow(
      'cannot tell HAProxy that the drain is over, as its file says: ',
    );
    process.kill(worker, 'SIGCONT');
    expect(readRegistry(proxy)).toBe('a 20001\n');
  });

  it('tells a repair once, and sums it up in its answer', async () => {
    const { machine, proxy } = await start();
    await proxy.set('a', 20_001);
    await proxy.tell(`set map ${proxy.at.instancesMap} a 9`);
    const { stdout, stderr } = await machine.reeve('proxy', 'sync');
    expect(stdout).toBe('HAProxy has 1 instance; repaired: 1\n');
    expect(stderr.match(/a had 9 instead of 20001/g)).toHaveLength(1);
  });

  it('drains as its unit stops, within proxy_drain_timeout, and takes tunnels again (A25, A70)', async () => {
    const { machine, proxy } = await start({ proxy_drain_timeout: '300ms' });
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    await openTunnel(proxy.port, '/i/a/');
    const end = await machine.reeve('proxy', 'drain', '--json');
    expect([end.status, JSON.parse(end.stdout)]).toEqual([
      0,
      {
        version: 1,
        command: 'proxy drain',
        outcome: 'done',
        tunnels: 1,
        ended: 0,
        forced: 1,
        draining: true,
      },
    ]);
    expect(end.stderr).toContain('tunnels closed by force after 300ms: 1');
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow(' 503 ');
    const over = await machine.reeve('proxy', 'drain', '--end', '--json');
    expect(JSON.parse(over.stdout)).toMatchObject({ outcome: 'done', running: true, draining: false });
    expect((await machine.reeve('proxy', 'drain', '--end')).stdout).toBe('new tunnels are taken\n');
    expect(await (await openTunnel(proxy.port, '/i/a/')).say('x')).toBe('it: x');
  });

  it('prepares and drains with a configuration that cannot be read, and says so', async () => {
    const { machine, proxy } = await start();
    await proxy.set('a', 20_001);
    await proxy.stop();
    machine.write('etc/reeve.yaml', 'commands: {\n');
    for (const words of [['sync', '--write-only'], ['drain']]) {
      const { status, stderr } = await machine.reeve('proxy', ...words);
      expect([status, stderr]).toEqual([0, expect.stringContaining('goes on without its configuration')]);
    }
    expect((await machine.reeve('proxy', 'sync')).status).toBe(78);
  });
});

describe('reeve doctor', () => {
  it('tells how many tunnels there are, what HAProxy has otherwise, and a drain', async () => {
    const { machine, proxy } = await start();
    const look = async (): Promise<string[]> => {
      const { stdout } = await machine.reeve('doctor', '--json');
      const findings = JSON.parse(stdout).findings as { check: string; level: string; what: string }[];
      return findings.filter(({ check }) => check === 'proxy').map(({ level, what }) => `${level}: ${what}`);
    };
    await proxy.set('a', (await startBackendServer('it')).backend.port);
    await proxy.set('b', 20_001);
    await openTunnel(proxy.port, '/i/a/');
    expect(await look()).toEqual(['ok: HAProxy answers, 1 tunnel']);
    await proxy.tell(`set map ${proxy.at.instancesMap} b 9`);
    expect(await look()).toEqual(['failure: HAProxy differs from the registry: b had 9 instead of 20001']);
    await machine.reeve('proxy', 'sync');
    await drainProxy(proxy.ctx, { boundMs: 0 });
    expect(await look()).toEqual(['warning: new tunnels are refused (drain)']);
    await proxy.stop();
    expect(await look()).toEqual(['failure: it is not there']);
  });
});

describe('reeve doctor, without a lock', () => {
  it('tells of no difference that was a registration under way', async () => {
    const { machine, proxy } = await start();
    await proxy.set('a', 20_001);
    let looks = 0;
    await alterMaster(proxy, async (request, answer) => {
      if (!request.includes('show map')) return answer;
      looks += 1;
      // Between its look at the files and that at the worker.
      if (looks > 1) return answer;
      await proxy.set('a', 20_002);
      return answer.replace(' a 20001', ' a 20002');
    });
    const { stdout } = await machine.reeve('doctor', '--json');
    const findings = JSON.parse(stdout).findings as { check: string; what: string }[];
    expect(findings.filter(({ check }) => check === 'proxy').map(({ what }) => what)).toEqual([
      'HAProxy answers, 0 tunnels',
    ]);
    expect(looks).toBe(2);
  });
});

describe('a heartbeat', () => {
  it('repairs the proxy and reports it, and says nothing where it is right (A74)', async () => {
    const { machine, proxy } = await start();
    await proxy.set('a', 20_001);
    await proxy.tell(`set map ${proxy.at.instancesMap} a 9`);
    const first = await machine.reeve('heartbeat', '--json');
    const what = `a had 9 instead of 20001 in worker ${proxy.workers()[0]}`;
    expect([first.status, JSON.parse(first.stdout).proxy]).toEqual([0, { repaired: [what], forced: 0 }]);
    expect(first.stderr).toContain(`the proxy was repaired: ${what}`);
    const second = await machine.reeve('heartbeat', '--json');
    expect([second.status, second.stderr, JSON.parse(second.stdout).proxy]).toEqual([0, '', undefined]);
  });
});
