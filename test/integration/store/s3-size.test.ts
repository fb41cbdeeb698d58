// Documents that are none by their size, whatever a service says of it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openStore } from '../../../src/lib/store/open.ts';

const mebibyte = 1024 * 1024;

it.each([
  ['no length', {}],
  ['a length', { 'content-length': String(1024 * mebibyte) }],
])('is not read into memory as a document where it has %s and does not end', async (_, length) => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  onTestFinished(() => void vi.unstubAllEnvs());
  let sentBytes = 0;
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(200, { etag: '"e"', ...length });
    const send = (): void => {
      while (!response.destroyed && sentBytes < 1024 * mebibyte) {
        sentBytes += mebibyte;
        if (!response.write(Buffer.alloc(mebibyte))) break;
      }
    };
    response.on('drain', send);
    send();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = await openStore({ store: 's3://state', region: 'eu-central-1', endpoint });
  await expect(store.get('a.json')).rejects.toMatchObject({
    ...{
      name: 'InputError',
      message: expect.stringMatching(/^cannot read "a.json" as a document: it has \d+ bytes/),
    },
  });
  // What is on its way in buffers of the kernel comes on top of the 64 MB.
  expect(sentBytes).toBeLessThan(128 * mebibyte);
  expect(asked).toBe(1);
});
