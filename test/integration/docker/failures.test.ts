// How the client tells apart what can stand between it and an engine. Fake engines, real sockets.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/lib/docker/client.ts';
import type { Engine } from '../../../src/lib/docker/types.ts';
import { ConfigError, type ReeveError, UnavailableError } from '../../../src/lib/errors.ts';
import { answer, type FakeEngine, startFakeEngine, startRawEngine } from '../../support/fake-engine.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const short = { readMs: 150, changeMs: 150, stopMarginMs: 200, idleMs: 150, waitSliceMs: 150 };

/** `short` where something hangs; else nothing may be late, whatever holds this process up. */
function open(socket: string, deadlines?: typeof short): Engine {
  const engine = openEngine({ socket, ...(deadlines && { deadlines }) });
  closers.push(() => engine.close());
  return engine;
}

async function fake(starting: Promise<FakeEngine>): Promise<FakeEngine> {
  const engine = await starting;
  closers.push(() => engine.stop());
  return engine;
}

async function failure(work: Promise<unknown>): Promise<ReeveError> {
  return await work.then(
    () => expect.fail('nothing failed'),
    (error) => error,
  );
}

const list = (engine: Engine) => engine.listContainers({ labels: [] });

describe('an engine out of reach', () => {
  it('is told by its socket and what to do, where the socket is missing', async () => {
    const error = await failure(list(open('/nonexistent/engine.sock')));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toBe(
      'cannot list containers: the engine at "/nonexistent/engine.sock" does not exist; install and start it (systemctl start docker), or set cluster.docker.socket',
    );
  });

  it('is told where nothing listens', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'reeve-fake-'));
    closers.push(() => rmSync(dir, { recursive: true }));
    const socket = join(dir, 'engine.sock');
    writeFileSync(socket, '');
    const error = await failure(list(open(socket)));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toBe(
      `cannot list containers: the engine at "${socket}" is not running; start it (systemctl start docker)`,
    );
  });

  it('is told where the user may not use the socket', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'reeve-fake-'));
    closers.push(() => rmSync(dir, { recursive: true }));
    const client = resolve(import.meta.dirname, '../../../src/lib/docker/client.ts');
    const script = `import { openEngine } from ${JSON.stringify(client)};
      await openEngine({ socket: ${JSON.stringify(join(dir, 'engine.sock'))} })
        .listContainers({ labels: [] }).catch((error) => console.log(error.code, error.message));`;
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      uid: 65534,
      gid: 65534,
      cwd: '/',
      encoding: 'utf8',
    });
    expect(said).toBe(
      `unavailable cannot list containers: the engine at "${dir}/engine.sock" may not be used by this user; run as root\n`,
    );
  });

  it('is told with the deadline where it hangs before its answer', async () => {
    const { socket } = await fake(startRawEngine(() => {}));
    const engine = open(socket, short);
    const error = await failure(list(engine));
    expect(error).toBeInstanceOf(UnavailableError);
    expect([error.code, error.message]).toEqual([
      'deadline',
      `cannot list containers: the engine at "${socket}" did not answer within 150ms`,
    ]);
  });

  it('is told with the deadline where it hangs in the middle of its answer', async () => {
    const { socket } = await fake(startFakeEngine('1.41', (_line, response) => response.write('[')));
    const error = await failure(list(open(socket, short)));
    expect([error.code, error.message]).toEqual([
      'deadline',
      `cannot list containers: the engine at "${socket}" did not answer within 150ms`,
    ]);
  });

  it('gets the grace of a stop on top of the deadline', async () => {
    const { socket } = await fake(startRawEngine(() => {}));
    const error = await failure(open(socket, short).stopContainer('web', 0.2));
    expect(error.message).toBe(
      `cannot stop container "web": the engine at "${socket}" did not answer within 1.2s`,
    );
  });
});

describe('an answer that no engine gives', () => {
  const version = 'Api-Version: 1.41\r\nContent-Type: text/html\r\n';
  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2p1\r\n\r\n', 'answers something that is not HTTP'],
    [
      'nothing at all',
      '',
      'closed the connection in the middle of its answer; look at its log (journalctl -u docker)',
    ],
    [
      'a web page',
      'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>',
      'answers as no container engine does (status 200 without an API version)',
    ],
    [
      'a 404 of a web server, which is not the absence of a container',
      'HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>',
      'answers as no container engine does (status 404 without an API version)',
    ],
    [
      'a strange version',
      'HTTP/1.1 200 OK\r\nApi-Version: new\r\nContent-Length: 2\r\n\r\n[]',
      'answers as no container engine does (status 200 without an API version)',
    ],
    [
      'HTML under a version',
      `HTTP/1.1 200 OK\r\n${version}Content-Length: 6\r\n\r\n<html>`,
      'answers as no container engine does (status 200 with something that is not JSON)',
    ],
    [
      'JSON cut short',
      `HTTP/1.1 200 OK\r\n${version}Content-Length: 4\r\n\r\n[{"I`,
      'answers as no container engine does (status 200 with something that is not JSON)',
    ],
    [
      'JSON of another shape',
      `HTTP/1.1 200 OK\r\n${version}Content-Length: 2\r\n\r\n{}`,
      'answers as no container engine does (no list of containers)',
    ],
    [
      'an error without a message',
      `HTTP/1.1 500 Oops\r\n${version}Content-Length: 2\r\n\r\n{}`,
      'answers as no container engine does (status 500 without a message)',
    ],
    [
      'a body that ends too early',
      `HTTP/1.1 200 OK\r\n${version}Content-Length: 100\r\n\r\n[]`,
      'closed the connection in the middle of its answer; look at its log (journalctl -u docker)',
    ],
  ])('is unavailability: %s', async (_name, bytes, words) => {
    const { socket } = await fake(startRawEngine((connection) => connection.end(bytes)));
    const error = await failure(list(open(socket)));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toBe(`cannot list containers: the engine at "${socket}" ${words}`);
  });

  it('is unavailability when the connection is reset in mid-answer', async () => {
    const bytes = `HTTP/1.1 200 OK\r\n${version}Content-Length: 100\r\n\r\n[`;
    const { socket } = await fake(
      startRawEngine((connection) => connection.write(bytes, () => connection.destroy())),
    );
    const error = await failure(list(open(socket)));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toContain('closed the connection in the middle of its answer');
  });

  it('is never taken for the absence of a container', async () => {
    const { socket } = await fake(
      startFakeEngine(undefined, (_line, response) => answer(response, 404, { message: 'not here' })),
    );
    const engine = open(socket);
    expect(await failure(engine.inspectContainer('web'))).toBeInstanceOf(UnavailableError);
    expect(await failure(engine.removeContainer('web', { force: true }))).toBeInstanceOf(UnavailableError);
    expect(await failure(engine.inspectImage('web:1'))).toBeInstanceOf(UnavailableError);
  });
});

describe('the version of the API', () => {
  it('is learned from the first answer, without a request of its own and on one connection', async () => {
    const { socket, requests, lines } = await fake(
      startFakeEngine('1.44', (_line, response) => answer(response, 200, [])),
    );
    const engine = open(socket);
    expect(engine.apiVersion).toBeUndefined();
    await list(engine);
    await list(engine);
    await engine.listImages();
    expect(lines()).toEqual([
      'GET /containers/json?all=1&filters=%7B%22label%22%3A%5B%5D%7D',
      'GET /v1.44/containers/json?all=1&filters=%7B%22label%22%3A%5B%5D%7D',
      'GET /v1.44/images/json',
    ]);
    expect([engine.apiVersion, engine.requestCount]).toEqual(['1.44', 3]);
    expect(requests.map(({ connection }) => connection)).toEqual([0, 0, 0]);
  });

  it('is the newest that we know where the engine is newer still', async () => {
    const { socket, lines } = await fake(
      startFakeEngine('1.99', (_line, response) => answer(response, 200, [])),
    );
    const engine = open(socket);
    await list(engine);
    await engine.listImages();
    expect(lines()[1]).toBe('GET /v1.52/images/json');
  });

  it('that is too old is a matter of configuration, said with both versions', async () => {
    const { socket } = await fake(startFakeEngine('1.40', (_line, response) => answer(response, 200, [])));
    const error = await failure(list(open(socket)));
    expect(error).toEqual(
      new ConfigError(
        `cannot list containers: the engine at "${socket}" speaks API 1.40, but 1.41 (Docker 20.10) or newer is needed`,
      ),
    );
  });

  it('that the engine has ceased to speak is a matter of configuration, too', async () => {
    const { socket } = await fake(
      startFakeEngine('1.70', (line, response) => {
        if (line.startsWith('GET /v')) {
          if (line === 'GET /version') answer(response, 200, { ApiVersion: '1.70', MinAPIVersion: '1.60' });
          else answer(response, 400, { message: 'client version 1.52 is too old' });
        } else answer(response, 200, []);
      }),
    );
    const engine = open(socket);
    await list(engine);
    const error = await failure(list(engine));
    expect(error).toEqual(
      new ConfigError(
        `cannot use the engine at "${socket}": it needs API 1.60 or newer, and this reeve speaks at most 1.52; update reeve`,
      ),
    );
  });
});

describe('a kept connection that the engine closes under a request', () => {
  const closing = () => {
    let served = 0;
    return startFakeEngine('1.41', (_line, response, request) => {
      served += 1;
      if (served === 2) request.socket.destroy();
      else answer(response, 200, []);
    });
  };

  it('is replaced where the request only asks', async () => {
    const { socket, requests } = await fake(closing());
    const engine = open(socket);
    await list(engine);
    await list(engine);
    expect(requests.map(({ connection }) => connection)).toEqual([0, 0, 1]);
  });

  it('is told where the request changes something: it is never sent twice', async () => {
    const { socket, requests } = await fake(closing());
    const engine = open(socket);
    await list(engine);
    expect(await failure(engine.startContainer('web'))).toBeInstanceOf(UnavailableError);
    expect(requests).toHaveLength(2);
  });
});
