import { expect, it } from 'vitest';
import { reeveKey } from '../../../src/lib/cluster/keys.ts';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { emptyEdge } from '../../../src/lib/edge/documents.ts';
import { type Glanced, gatherEdge } from '../../../src/lib/edge/gather.ts';
import type { EdgeSession } from '../../../src/lib/edge/session.ts';
import type { CheckedShard } from '../../../src/lib/edge/shard.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import type { Store } from '../../../src/lib/store/store.ts';

const nodes = { 'app-1': '10.0.0.1', 'app-2': '10.0.0.2', 'app-3': '10.0.0.3' };
const caddy = { admin: 'http://127.0.0.1:2019', httpPort: 80, httpsPort: 443, issuer: 'internal' as const };

it('asks all nodes at once what drains there: one that does not answer keeps no other from it', async () => {
  const asked: string[] = [];
  let tellAll = (): void => {};
  const allAsked = new Promise<void>((resolve) => {
    tellAll = resolve;
  });
  const get = async (key: string): ReturnType<Store['get']> => {
    asked.push(key);
    if (asked.length === 3) tellAll();
    await allAsked;
    if (key === reeveKey('default', 'app-2')) throw new Error('it cannot be read');
    const nodeId = key.split('/').at(-2);
    const text = JSON.stringify({ nodeId, draining: [{ hostPort: 20_000 }] });
    return { text, etag: 'e', updatedAt: new Date(0) };
  };

  const { draining } = await gatherEdge(openSession({ get }), glanceWithout());

  expect(asked).toEqual(Object.keys(nodes).map((node) => reeveKey('default', node)));
  expect(draining).toEqual(new Set(['10.0.0.1:20000', '10.0.0.3:20000']));
});

function openSession(store: Pick<Store, 'get'>): EdgeSession {
  const balancer = { name: 'caddy', readHealthPaths: async () => new Map() };
  const edge = { clusterId: 'default', edgeId: 'edge-1', caddy };
  return { ctx: { log: silentLog }, edge, store, memory: emptyEdge, balancer } as unknown as EdgeSession;
}

/** Caddy serves a backend of each node, and none of them has it in its shard any more. */
function glanceWithout(): Glanced {
  const backends = Object.values(nodes).map((host) => ({ host, port: 20_000 }));
  const document = buildCaddyDocument([{ domain: 'a.test', backends }], { caddy, closeDelay: false });
  const live = { kind: 'read' as const, text: JSON.stringify(document), etag: 'e', textHash: 'h' };
  const glance = { now: new Date(0), settings: '', contents: 'c', gone: false, live, stamp: 's' };
  const shards = Object.entries(nodes).map(
    ([node, host]): CheckedShard => ({ node, host, fingerprint: 'f', backends: [], rejected: [] }),
  );
  const list = { listing: '', etags: {}, contents: 'c', gone: false };
  return {
    glance: { ...glance, memory: emptyEdge },
    list: { ...list, read: async () => ({ shards, isRemembered: false }) },
  };
}
