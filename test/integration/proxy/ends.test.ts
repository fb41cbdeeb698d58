// Tunnels that end the hard way: each one by itself, and none of them with the process that relays all the others.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { drainProxy } from '../../../src/lib/proxy/drain.ts';
import { countTunnels } from '../../../src/lib/proxy/tunnels.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { freePort } from '../../support/ports.ts';
import { startProxy, type TestProxy, untilDraining } from '../../support/proxy.ts';
import { askProxy, askRaw, openTunnel, upgradeFields } from '../../support/proxy-client.ts';

const accepted = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n';
const refused = 'HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone';
const fields = ['Host: gateway.test', 'Connection: Upgrade', 'Upgrade: tcp'];

/** An instance that answers each head so, and takes what is said to it afterwards as it likes. */
async function startInstance(answer: string, hear = (_: Socket): void => {}): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let isAnswered = false;
    socket.on('error', () => {});
    socket.on('data', () => {
      if (isAnswered) return hear(socket);
      isAnswered = true;
      socket.write(answer);
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

type End = [what: string, answer: string, run: (socket: Socket) => void, hear?: (socket: Socket) => void];

const ends: End[] = [
  ['a client that resets right after the answer', accepted, (socket) => socket.resetAndDestroy()],
  [
    'an instance that resets in the middle',
    accepted,
    (socket) => socket.write('x'),
    (socket) => socket.resetAndDestroy(),
  ],
  ['an instance that answers 404', refused, () => {}],
];

it.each(ends)('%s ends one tunnel and no other (R43)', async (_, answer, run, hear) => {
  const [proxy, steady] = [await startProxy(), await startBackendServer('it')];
  await proxy.set('steady', steady.backend.port);
  await proxy.set('odd', await startInstance(answer, hear));
  const kept = await openTunnel(proxy.port, '/i/steady/');
  const before = proxy.workers();
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connect(proxy.port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => {});
      socket.write(`GET /i/odd/ HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
      const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
      run(socket);
      return first.toString().split(' ')[1];
    }),
  );
  expect(answers).toEqual(Array.from({ length: 20 }, () => answer.split(' ')[1]));
  await until(async () => (await countTunnels(proxy.ctx)).total === 1);
  expect(await kept.say('still')).toBe('it: still');
  expect((await askProxy(proxy.port, '/i/steady/')).status).toBe(200);
  expect(proxy.workers()).toEqual(before);
});

it('an upgrade that changes something has a connection to its instance of its own, also after one that was not taken (A61)', async () => {
  const proxy = await startProxy();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnone'));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await proxy.set('odd', (server.address() as AddressInfo).port);
  const upgrade = `POST /i/odd/ HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`;
  const text = await askRaw(proxy.port, `${upgrade}${upgrade}${upgrade}`, 250, 3);
  expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 200']);
  expect(connections).toBe(3);
});

it('an instance that ends without an answer is 502, and on a connection that was asked on before the end of that (A59)', async () => {
  const [proxy, steady, cut] = [
    await startProxy(),
    await startBackendServer('it'),
    await startBackendServer('cut'),
  ];
  cut.status = 'cut';
  await proxy.set('steady', steady.backend.port);
  await proxy.set('cut', cut.backend.port);
  await proxy.set('refused', await freePort());
  const ask = async (answers: number, ...names: string[]): Promise<(string | undefined)[]> => {
    const heads = names.map((name) => `POST /i/${name}/ HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n`);
    const text = await askRaw(proxy.port, heads.join(''), 500, answers);
    return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
  };
  expect(await ask(2, 'cut', 'steady')).toEqual(['502', '200']);
  expect(await ask(3, 'steady', 'refused', 'steady')).toEqual(['200', '502', '200']);
  // As HAProxy has it: whoever asks is to take it for an end of the connection, and to know what may be sent again.
  expect(await ask(1, 'steady', 'cut', 'steady')).toEqual(['200']);
});

describe('a HAProxy that is killed, whose socket is left behind', () => {
  const kill = (proxy: TestProxy): void => {
    for (const pid of [proxy.pid, ...proxy.workers()]) process.kill(pid, 'SIGKILL');
  };

  it('has nothing to drain: nobody waits for the bound (A68)', async () => {
    const proxy = await startProxy();
    kill(proxy);
    const startedAt = performance.now();
    const { outcome, data } = await drainProxy(proxy.ctx, { boundMs: 60_000 });
    expect([outcome, data]).toMatchObject(['nothing-to-do', { tunnels: 0, ended: 0, forced: 0 }]);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  }, 40_000);

  it('in the middle of a drain ends it with all tunnels (A68)', async () => {
    const [proxy, steady] = [await startProxy(), await startBackendServer('it')];
    await proxy.set('steady', steady.backend.port);
    await openTunnel(proxy.port, '/i/steady/');
    const draining = drainProxy(proxy.ctx, { boundMs: 60_000 });
    await untilDraining(proxy);
    kill(proxy);
    const startedAt = performance.now();
    expect((await draining).data).toMatchObject({ tunnels: 1, ended: 1, forced: 0 });
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  }, 40_000);
});

it('a client that never ends its fields is no tunnel, and ends none (R43)', async () => {
  const [proxy, steady] = [await startProxy(), await startBackendServer('it')];
  await proxy.set('steady', steady.backend.port);
  const kept = await openTunnel(proxy.port, '/i/steady/');
  const head = `GET /i/steady/ HTTP/1.1\r\nHost: gateway.test\r\n${upgradeFields.join('\r\n')}\r\n`;
  const ended = askRaw(proxy.port, head);
  expect((await countTunnels(proxy.ctx)).total).toBe(1);
  expect(await ended).toMatch(/^HTTP\/1\.1 408 /);
  expect((await countTunnels(proxy.ctx)).total).toBe(1);
  expect(await kept.say('still')).toBe('it: still');
});
