import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderDocument, type UpstreamShard } from '../../../src/lib/cluster/wire.ts';
import { emptyEdge } from '../../../src/lib/edge/documents.ts';
import { listShards, type ShardList } from '../../../src/lib/edge/gather-shards.ts';
import type { CheckedShard } from '../../../src/lib/edge/shard.ts';
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

type Gathered = Omit<ShardList, 'read'> & { shards: readonly CheckedShard[] };

/** A tick's look, with what the look before has left. */
async function gather(store: Store, before?: Gathered): Promise<Gathered> {
  const readShards = async () =>
    before && Object.fromEntries(before.shards.map((shard) => [shard.node, shard]));
  const { read, ...list } = await listShards(store, prefix, { known: before ?? emptyEdge, readShards });
  return { ...list, shards: await read() };
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
  expect(await gather(store, first)).toEqual(first);
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
  expect(await list.read()).toEqual(first.shards);
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
