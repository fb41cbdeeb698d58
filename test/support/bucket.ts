// A part of a bucket behind a network that a test looks into: what nodes are given of it, and what they have asked.

import { renderDocument } from '../../src/lib/cluster/wire.ts';
import type { ClusterConfig } from '../../src/lib/config/config.ts';
import { onTestFinished } from './after-test.ts';
import { cloudRegion, startCloud } from './cloud.ts';
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts';

export type Bucket = {
  readonly proxy: FaultyProxy;
  /** For nodes: keys of the section `cluster`, and the environment. */
  readonly settings: Pick<ClusterConfig, 'store' | 'region' | 'endpoint'>;
  readonly env: Readonly<Record<string, string>>;
  read(key: string): Promise<unknown>;
  write(key: string, document: unknown): Promise<void>;
  /** Its first thousand keys, in order. */
  list(): Promise<string[]>;
  remove(key: string): Promise<void>;
  /** `METHOD key` of what was asked since the last time; of a list its prefix. */
  takeAsked(): string[];
};

const bucket = 'state';

/** Tests that share one pass their own hook. */
export async function startBucket({
  whenFinished = onTestFinished,
}: {
  whenFinished?: (clean: () => Promise<void>) => void;
} = {}): Promise<Bucket> {
  const { endpoint, env } = await startCloud({ buckets: [bucket], whenFinished });
  const proxy = await startFaultyProxy(endpoint, whenFinished);
  const send = async (key: string, init?: RequestInit): Promise<Response> => {
    const answer = await fetch(`${endpoint}/${bucket}/${key}`, init);
    if (answer.ok) return answer;
    throw new Error(`${key}: ${answer.status} ${await answer.text()}`);
  };
  return {
    proxy,
    settings: { store: `s3://${bucket}`, region: cloudRegion, endpoint: proxy.endpoint },
    env: { ...env, AWS_ENDPOINT_URL: proxy.endpoint },
    read: async (key) => (await send(key)).json(),
    write: async (key, document) => {
      await send(key, { method: 'PUT', body: renderDocument(document) });
    },
    list: async () => {
      const found = (await (await send('?list-type=2')).text()).matchAll(/<Key>([^<]*)<\/Key>/g);
      return [...found].map(([, key = '']) => key).sort();
    },
    remove: async (key) => {
      await send(key, { method: 'DELETE' });
    },
    takeAsked: () => {
      const asked = proxy.seen.map(({ method, path }) => {
        const { pathname, searchParams } = new URL(path, endpoint);
        const key = searchParams.get('prefix') ?? pathname.slice(bucket.length + 2);
        return `${searchParams.has('prefix') ? 'LIST' : method} ${key}`;
      });
      proxy.seen.length = 0;
      return asked.sort();
    },
  };
}
