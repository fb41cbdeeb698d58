// A server over TLS that asks its callers for no certificate: what they may do is told by what they say.
import { copyFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { Route } from '../../../src/lib/server/route.ts';
import { callApi } from '../../support/api-node.ts';
import { createPki, type Pki, writeRsaKey } from '../../support/ploy/pki.ts';
import { type ServedRoutes, serveRoutes } from '../../support/served-routes.ts';
import { makeTempDir } from '../../support/temp.ts';

const routes: Route[] = [
  { method: 'GET', path: '/health', handle: () => Promise.resolve({ status: 200, json: { status: 'ok' } }) },
];

const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

type Place = { pki: Pki; files: { certPath: string; keyPath: string }; served: ServedRoutes };

async function serveAlone(): Promise<Place> {
  const root = makeTempDir();
  const pki = createPki(root);
  const files = { certPath: join(root, 'api.crt'), keyPath: join(root, 'api.key') };
  put(files, pki.server);
  return { pki, files, served: await serveRoutes({ routes, certificates: files }) };
}

function put({ certPath, keyPath }: Place['files'], from: { cert: string; key: string }): void {
  copyFileSync(from.key, keyPath);
  copyFileSync(from.cert, certPath);
}

/** The serial number of what the server shows. */
async function serialOf(port: number): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

describe('TLS without certificates of callers', () => {
  it('serves a caller that shows none, and one that does', async () => {
    const { pki, served } = await serveAlone();
    for (const as of ['none', pki.node, pki.foreign.node] as const) {
      expect((await callApi(served.port, pki, { as })).status).toBe(200);
    }
    expect(served.lines).toEqual([`info: listening on 127.0.0.1:${served.port}`]);
  });

  it('refuses TLS below 1.3, and a caller without TLS', async () => {
    const { pki, served } = await serveAlone();
    const options = { maxVersion: 'TLSv1.2' as const };
    await expect(callApi(served.port, pki, { as: 'none', options })).rejects.toThrow(/protocol version/i);
    await expect(callApi(served.port, undefined)).rejects.toThrow();
    expect((await callApi(served.port, pki, { as: 'none' })).status).toBe(200);
  });

  it('takes a renewed certificate at the next connection', async () => {
    const { pki, files, served } = await serveAlone();
    const before = await serialOf(served.port);
    put(files, pki.issueServer());
    const { mtimeMs } = statSync(files.certPath);
    utimesSync(files.certPath, new Date(mtimeMs + 5_000), new Date(mtimeMs + 5_000));
    expect(await serialOf(served.port)).not.toBe(before);
    expect(served.lines).toContain('info: took a new certificate into force');
  });

  it.each([
    [
      'a key of another certificate',
      'key',
      (place: Place) => copyFileSync(place.pki.node.key, place.files.keyPath),
    ],
    ['a key of another kind', 'key', ({ files }: Place) => writeRsaKey(files.keyPath)],
    ['an empty key', 'key', ({ files }: Place) => writeFileSync(files.keyPath, '')],
    ['a damaged key', 'key', ({ files }: Place) => writeFileSync(files.keyPath, 'junk')],
    ['a damaged certificate', 'cert', ({ files }: Place) => writeFileSync(files.certPath, damaged)],
    ['no certificate', 'cert', ({ files }: Place) => rmSync(files.certPath)],
  ] as const)('does not begin with %s, and names the file', async (_, part, spoil) => {
    const place = await serveAlone();
    spoil(place);
    const path = part === 'key' ? place.files.keyPath : place.files.certPath;
    await expect(serveRoutes({ routes, certificates: place.files })).rejects.toThrow(
      new RegExp(`^cannot (use the (key|certificate) in|read) ${JSON.stringify(path)}: `),
    );
  });

  it('keeps the certificate in force where the new key is of another kind', async () => {
    const { pki, files, served } = await serveAlone();
    writeRsaKey(files.keyPath);
    expect((await callApi(served.port, pki, { as: 'none' })).status).toBe(200);
    expect(served.lines.at(-1)).toBe(
      `warning: the certificate stays as it is: cannot use the key in ${JSON.stringify(files.keyPath)}: it is not the key of ${JSON.stringify(files.certPath)}`,
    );
  });
});
