import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderDocument, type UpstreamShard } from '../../../src/lib/cluster/wire.ts';
import { emptyEdge } from '../../../src/lib/edge/documents.ts';
import { listShards, type ReadShards, type ShardList } from '../../../src/lib/edge/gather-shards.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import type { Store } from '../../../src/lib/store/store.ts';
import { makeTempDir } from '../../support/temp.ts';

const prefix = 'nodes/edge-1/upstream/';

function aShard(nodeId: string, hostPort: number): UpstreamShard {
  return { nodeId, privateIp: '10.0.0.1', updatedAt: 'x', backends: [{ domain: 'a.example.com', hostPort }] };
}

/** A store in a directory that tells which documents were fetched. */
function makeStore(): { store: Store; fetched: string[]; lists: string[] } {
  const root = join(makeTempDir(), 'store');
  mkdirSync(root);
  const store = openFileStore(root);
  const fetched: string[] = [];
  const lists: string[] = [];
  const get: Store['get'] = (key) => {
    fetched.push(key);
    return store.get(key);
  };
  const list: Store['list'] = (under) => {
    lists.push(under);
    return store.list(under);
  };
  return { store: { ...store, get, list }, fetched, lists };
}

const put = (store: Store, nodeId: string, text: string) => store.put(`${prefix}${nodeId}.json`, text);

type Gathered = Omit<ShardList, 'read'> & ReadShards;

/** A tick's look, with what the look before has left. */
async function gather(store: Store, before?: Gathered): Promise<Gathered> {
  const readShards = async () =>
    before && Object.fromEntries(before.shards.map((shard) => [shard.node, shard]));
  const { read, ...list } = await listShards(store, prefix, { known: before ?? emptyEdge, readShards });
  return { ...list, ...(await read()) };
}

it('lists its own prefix only, and fetches nothing again that is the same (L40, L41)', async () => {
  const { store, fetched, lists } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  await put(store, 'app-2', renderDocument(aShard('app-2', 20002)));
  await store.put('nodes/edge-1/status.json', '{}');
  const first = await gather(store);
  expect(first.shards.map(({ node, backends }) => [node, backends[0]?.port])).toEqual([
    ['app-1', 20001],
    ['app-2', 20002],
  ]);
  expect(fetched.splice(0)).toHaveLength(2);
  expect(first.isRemembered).toBe(false);
  expect(await gather(store, first)).toEqual({ ...first, isRemembered: true });
  expect([fetched, new Set(lists)]).toEqual([[], new Set([prefix])]);
});

it('fetches the one shard that has changed (L41)', async () => {
  const { store, fetched } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  await put(store, 'app-2', renderDocument(aShard('app-2', 20002)));
  const first = await gather(store);
  fetched.splice(0);
  await put(store, 'app-2', renderDocument(aShard('app-2', 20003)));
  const second = await gather(store, first);
  expect(fetched).toEqual([`${prefix}app-2.json`]);
  expect(second.shards.map(({ backends }) => backends[0]?.port)).toEqual([20001, 20003]);
});

it('keeps the last good routes of a shard that is damaged, says so, and reads it once', async () => {
  const { store, fetched } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  await put(store, 'app-1', '{"nodeId": "app-1", "back');
  const second = await gather(store, first);
  expect(second.shards).toMatchObject([
    {
      fingerprint: '',
      backends: [{ domain: 'a.example.com', host: '10.0.0.1', port: 20001 }],
      rejected: [
        { node: 'app-1', subject: 'shard', reason: 'it is not whole JSON: its last good routes stay' },
      ],
    },
  ]);
  fetched.splice(0);
  expect((await gather(store, second)).shards).toEqual(second.shards);
  expect(fetched).toEqual([]);
});

it('knows nothing of a shard that was damaged from the start', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', '');
  const { shards } = await gather(store);
  expect(shards).toMatchObject([{ backends: [], rejected: [{ reason: 'it is not whole JSON' }] }]);
});

it('lets go of a node whose shard is gone, but not of all nodes at once', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  await put(store, 'app-2', renderDocument(aShard('app-2', 20002)));
  const both = await gather(store);
  await store.delete(`${prefix}app-2.json`);
  const one = await gather(store, both);
  expect([one.gone, one.shards.map(({ node }) => node)]).toEqual([false, ['app-1']]);
  await store.delete(`${prefix}app-1.json`);
  const none = await gather(store, one);
  expect([none.gone, none.shards]).toEqual([true, one.shards]);
  // And the tick after it, which remembers the empty list.
  expect(await gather(store, none)).toMatchObject({
    gone: true,
    shards: one.shards,
  });
});

it('takes a shard that was only written again for the same, and fetches it', async () => {
  const { store, fetched } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  fetched.splice(0);
  await put(store, 'app-1', renderDocument({ ...aShard('app-1', 20001), updatedAt: 'later' }));
  const second = await gather(store, first);
  expect([second.listing === first.listing, second.contents === first.contents, fetched.length]).toEqual([
    false,
    true,
    1,
  ]);
});

it('fetches all of them again where what it remembers of them is lost', async () => {
  const { store, fetched } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  fetched.splice(0);
  const list = await listShards(store, prefix, { known: first, readShards: async () => undefined });
  expect(await list.read()).toEqual({ shards: first.shards, isRemembered: false });
  expect(fetched).toEqual([`${prefix}app-1.json`]);
});

it('does not read a shard for a list that is the same (L41)', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  const readShards = () => Promise.reject(new Error('read'));
  expect((await listShards(store, prefix, { known: first, readShards })).contents).toBe(first.contents);
});

it('has no shards before anybody has written one', async () => {
  const { store } = makeStore();
  expect(await gather(store)).toMatchObject({ gone: false, shards: [] });
});

it('leaves alone what is no shard of a node', async () => {
  const { store } = makeStore();
  await store.put(`${prefix}app-1.json.tmp`, 'x');
  await store.put(`${prefix}deeper/app-1.json`, 'x');
  await store.put(`${prefix}no id.json`, 'x');
  expect((await gather(store)).shards).toEqual([]);
});

it('takes no shard of another time for the one that an etag stands for (L41)', async () => {
  const { store, fetched } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  await put(store, 'app-2', renderDocument(aShard('app-2', 20002)));
  const before = await gather(store);
  await put(store, 'app-1', renderDocument(aShard('app-1', 20009)));
  const first = await gather(store, before);
  fetched.splice(0);
  // As where edge-shards.json was damaged and its previous copy is taken, or one of the two files was not written.
  const parted = { ...first, shards: before.shards };
  expect((await gather(store, parted)).shards).toEqual(first.shards);
  await put(store, 'app-2', renderDocument(aShard('app-2', 20003)));
  const { shards } = await gather(store, parted);
  expect(shards.map(({ backends }) => backends[0]?.port)).toEqual([20009, 20003]);
});

it('refuses a shard that is not text by itself, and keeps what was read of it last', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  await store.put(`${prefix}app-1.json`, Uint8Array.of(0xff, 0xfe, 0x00));
  await put(store, 'app-2', renderDocument({ ...aShard('app-2', 20002), privateIp: '10.0.0.2' }));
  const { shards } = await gather(store, first);
  expect(shards.map(({ backends, rejected }) => [backends[0]?.port, rejected[0]?.reason])).toEqual([
    [20001, expect.stringMatching(/it is not UTF-8 text: its last good routes stay$/)],
    [20002, undefined],
  ]);
});

it('looks again for a shard that went while it was looking', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  await put(store, 'app-2', renderDocument(aShard('app-2', 20002)));
  const goingStore: Store = {
    ...store,
    get: async (key) => (key.endsWith('app-2.json') ? undefined : await store.get(key)),
  };
  const first = await gather(goingStore);
  expect(first.shards.map(({ node }) => node)).toEqual(['app-1']);
  expect((await gather(store, first)).shards.map(({ node }) => node)).toEqual(['app-1', 'app-2']);
});

it('does not take a store without any shard for an answer where the last ones are lost', async () => {
  const { store } = makeStore();
  await put(store, 'app-1', renderDocument(aShard('app-1', 20001)));
  const first = await gather(store);
  await store.delete(`${prefix}app-1.json`);
  const lost = gather(store, { ...first, shards: [] });
  await expect(lost).rejects.toMatchObject({ name: 'UnavailableError' });
  // Only what was known of the list is lost.
  expect(await gather(store, { ...emptyEdge, ...first, listing: '', etags: {}, contents: '' })).toMatchObject(
    {
      gone: true,
      shards: first.shards,
    },
  );
});
