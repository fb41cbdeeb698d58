// Requests over real sockets: kept connections that are closed, answers that are too large or stop coming, and TLS.
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SecureVersion } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type HttpClient, type HttpOptions, openHttp } from '../../../src/lib/http/client.ts';
import { buildSecureContext } from '../../../src/lib/http/tls.ts';
import { type CertificateFiles, createPki } from '../../support/ploy/pki.ts';
import { freePort } from '../../support/ports.ts';
import { makeTempDir } from '../../support/temp.ts';

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function serve(listener: RequestListener): Promise<{ server: Server; http: HttpClient }> {
  const server = createServer(listener);
  return { server, http: open({ baseUrl: `http://127.0.0.1:${await listen(server)}` }) };
}

function open(options: HttpOptions): HttpClient {
  const http = openHttp(options);
  onTestFinished(() => http.close());
  return http;
}

const get = { method: 'GET', path: '/x' } as const;

describe('a request', () => {
  it('is told at once where the server wants to speak another protocol', async () => {
    const head = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n';
    const { http } = await serve((request) => void request.socket.write(head));
    const post = { ...get, method: 'POST', timeoutMs: 5_000 } as const;
    await expect(http.send(post)).rejects.toThrow('the connection was closed before the answer');
  });

  it('uses a connection again, and asks a GET again where that had been closed', async () => {
    let connections = 0;
    let isClosing = false;
    const { server, http } = await serve((request, response) => {
      if (isClosing) {
        isClosing = false;
        request.socket.destroy();
      } else response.end('here');
    });
    server.on('connection', () => {
      connections += 1;
    });
    await http.send(get);
    await http.send(get);
    expect(connections).toBe(1);
    isClosing = true;
    expect((await http.send(get)).body.toString()).toBe('here');
    expect(connections).toBe(2);
    isClosing = true;
    await expect(http.send({ ...get, method: 'POST' })).rejects.toMatchObject({ code: 'network' });
  });

  it('ends with its client, also over a connection that was kept', async () => {
    let asked = 0;
    const { http } = await serve((request, response) => {
      asked += 1;
      if (request.url === '/x') response.end('here');
      else http.close();
    });
    await http.send(get);
    const startedAtMs = performance.now();
    await expect(http.send({ ...get, path: '/silent', timeoutMs: 60_000 })).rejects.toThrow();
    expect(performance.now() - startedAtMs).toBeLessThan(20_000);
    expect(asked).toBe(2);
  });

  it('ends at its deadline, and with its signal', async () => {
    const { http } = await serve(() => {});
    await expect(http.send({ ...get, timeoutMs: 50 })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringMatching(/no answer within 50 ms$/),
    });
    const signal = AbortSignal.timeout(50);
    await expect(http.send({ ...get, signal })).rejects.toMatchObject({ code: 'interrupted' });
  });

  it('takes no answer that is too large, whether that is said or not', async () => {
    const { http } = await serve((request, response) => {
      if (request.url === '/said') response.setHeader('content-length', 2000);
      response.write(Buffer.alloc(1000));
      response.end(Buffer.alloc(1000));
    });
    for (const path of ['/said', '/unsaid']) {
      const answer = http.send({ method: 'GET', path, maxAnswerBytes: 1500 });
      await expect(answer).rejects.toMatchObject({ code: 'too-large' });
    }
  });

  it('says that nobody listens', async () => {
    const http = open({ baseUrl: `http://127.0.0.1:${await freePort()}` });
    await expect(http.send(get)).rejects.toThrow(
      /^cannot reach http:\/\/127\.0\.0\.1:\d+: connection refused$/,
    );
  });
});

describe('a stream', () => {
  it('comes whole, and waits for a slow reader', async () => {
    const { http } = await serve((_, response) => response.end('a'.repeat(200_000)));
    const answer = await http.stream({ ...get, idleMs: 1_000 });
    if (!('stream' in answer)) throw new Error('no stream');
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect((await text(answer.stream)).length).toBe(200_000);
  });

  it('fails where nothing comes any more, and where it is cut', async () => {
    const { http } = await serve((request, response) => {
      response.setHeader('content-length', 10);
      response.write('begin');
      if (request.url === '/cut') setTimeout(() => response.destroy(), 20);
    });
    for (const [path, code, idleMs] of [
      ['/idle', 'timeout', 100],
      ['/cut', 'network', 60_000],
    ] as const) {
      const answer = await http.stream({ method: 'GET', path, idleMs });
      if (!('stream' in answer)) throw new Error('no stream');
      await expect(text(answer.stream)).rejects.toMatchObject({ code });
    }
  });

  it('lets go of its connection where nobody reads it', async () => {
    const closed = new Promise<boolean>((resolve) => {
      void serve((_request, response) => {
        response.write('begun');
        response.once('close', () => resolve(true));
      }).then(async ({ http }) => {
        const answer = await http.stream(get);
        if ('stream' in answer) answer.stream.destroy();
      });
    });
    expect(await closed).toBe(true);
  });

  it('gives the answer where its status is no success', async () => {
    const { http } = await serve((_, response) => {
      response.statusCode = 404;
      response.end('no');
    });
    expect(await http.stream(get)).toMatchObject({ status: 404, body: Buffer.from('no') });
  });
});

describe('TLS', () => {
  const pem = ({ cert, key }: CertificateFiles) => ({
    cert: readFileSync(cert, 'utf8'),
    key: readFileSync(key, 'utf8'),
  });

  async function ask(about: {
    server: (pki: ReturnType<typeof createPki>) => CertificateFiles;
    client?: (pki: ReturnType<typeof createPki>) => CertificateFiles;
    maxVersion?: SecureVersion;
  }): Promise<string> {
    const pki = createPki(makeTempDir());
    const ca = readFileSync(pki.ca.cert, 'utf8');
    const server = createTlsServer(
      {
        ...{ ...pem(about.server(pki)), ca, requestCert: true, rejectUnauthorized: true },
        ...(about.maxVersion === undefined ? {} : { maxVersion: about.maxVersion }),
      },
      (_, response) => response.end('here'),
    );
    const port = await listen(server);
    const own = about.client === undefined ? {} : pem(about.client(pki));
    const http = open({
      baseUrl: `https://127.0.0.1:${port}`,
      secureContext: buildSecureContext({ ca, ...own }),
    });
    return await http.send(get).then(
      ({ body }) => body.toString(),
      (error: Error) => error.message,
    );
  }

  it('P14, P15: shows our certificate to a server of our authority', async () => {
    expect(await ask({ server: (pki) => pki.server, client: (pki) => pki.node })).toBe('here');
  });

  it.each([
    [
      'an expired certificate of the server',
      { server: (pki: ReturnType<typeof createPki>) => pki.expired() },
      /has expired: it has to be issued again there, unless this machine's clock/,
    ],
    [
      'a server of another authority',
      { server: (pki: ReturnType<typeof createPki>) => pki.foreign.node },
      /another authority than the system's authorities/,
    ],
    [
      'P25 a server that speaks no TLS 1.3',
      { server: (pki: ReturnType<typeof createPki>) => pki.server, maxVersion: 'TLSv1.2' as const },
      /does not speak TLS 1\.3/,
    ],
    [
      'a name that the certificate is not for',
      { server: (pki: ReturnType<typeof createPki>) => pki.issueNode('other') },
      /for another name/,
    ],
  ])('says what to do about %s', async (_, about, words) => {
    expect(await ask(about)).toMatch(words);
  });

  it('says that a port is none of TLS', async () => {
    const server = createServer((_, response) => response.end());
    const http = open({ baseUrl: `https://127.0.0.1:${await listen(server)}` });
    await expect(http.send(get)).rejects.toThrow(/does not speak TLS on this port/);
  });
});
