// Lists that break off.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openStore } from '../../../src/lib/store/open.ts';

/** A service that gives these pages and no other answer. */
async function openService(pages: readonly string[]) {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  onTestFinished(() => void vi.unstubAllEnvs());
  let asked = 0;
  const server = createServer((_, response) => {
    const page = pages[Math.min(asked, pages.length - 1)];
    asked += 1;
    response.setHeader('content-type', 'application/xml');
    response.end(`<?xml version="1.0"?><ListBucketResult><Name>state</Name>${page}</ListBucketResult>`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  return await openStore({ store: 's3://state', region: 'eu-central-1', endpoint });
}

const object = (key: string): string =>
  `<Contents><Key>${key}</Key><ETag>"e"</ETag><Size>1</Size><LastModified>2026-06-04T03:00:00.000Z</LastModified></Contents>`;
const more = (token: string): string =>
  `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`;

it('is read to its end, page by page', async () => {
  const store = await openService([
    object('a') + more('1'),
    `${object('b')}<IsTruncated>false</IsTruncated>`,
  ]);
  expect((await store.list('')).map(({ key }) => key)).toEqual(['a', 'b']);
});

it.each([
  ['breaks off without a way on', [`${object('a')}<IsTruncated>true</IsTruncated>`]],
  ['goes round in a circle', [object('a') + more('1')]],
])('is not taken for a whole one where it %s', async (_what, pages) => {
  const store = await openService(pages);
  await expect(store.list('')).rejects.toThrow(
    'cannot list bucket "state": the service breaks off and does not say how to go on',
  );
});

it('is given up where it has another page each time', async () => {
  const pages = Array.from({ length: 1001 }, (_, page) => more(String(page)));
  const store = await openService(pages);
  await expect(store.list('')).rejects.toThrow(
    'cannot list bucket "state": it does not end within 1000 pages',
  );
});

it('is not taken into memory where it is longer than a page can be', async () => {
  const long = object('a').repeat((16 * 1024 * 1024) / object('a').length + 1);
  const store = await openService([long]);
  await expect(store.list('')).rejects.toMatchObject({
    ...{ name: 'UnavailableError', code: 'answer' },
    message: 'cannot list "" in store "s3://state": an answer of more than 16 MB',
  });
});

it('has room for the longest page there is', async () => {
  // Nobody's keys here, but as long as keys can be.
  const foreign = object(encodeURIComponent('é'.repeat(512))).repeat(999);
  const store = await openService([`<EncodingType>url</EncodingType>${foreign}${object('a')}`]);
  expect((await store.list('')).map(({ key }) => key)).toContain('a');
});
