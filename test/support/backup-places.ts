// Places that the backups of a service of a test node lie in: a directory, or a bucket behind a network.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DesiredService } from '../../src/lib/cluster/wire.ts';
import { openFileStore } from '../../src/lib/store/file.ts';
import { openStore } from '../../src/lib/store/open.ts';
import type { Store } from '../../src/lib/store/store.ts';
import { writeSet } from './backup-files.ts';
import { aDatabase } from './builders.ts';
import { type Cloud, cloudRegion, makeBucket } from './cloud.ts';
import type { FaultyProxy } from './faulty-proxy.ts';
import { prefix } from './inventories.ts';
import { makeNode, type TestNode } from './node.ts';

const dayMs = 86_400_000;

/** One for a whole file: its days stay the same while it runs. In whole seconds, as fires are. */
const startedAt = Math.floor(Date.now() / 1000) * 1000;

export const daysAgo = (days: number): Date => new Date(startedAt - days * dayMs);

export type Place = { node: TestNode; store: Store; bucket: string };

export function aDirectory(): Place {
  const node = makeNode();
  const directory = join(node.root, 'backups');
  mkdirSync(directory);
  return { node, store: openFileStore(directory), bucket: `file://${directory}` };
}

let buckets = 0;

export async function aBucket({ endpoint, env }: Cloud, proxy: FaultyProxy): Promise<Place> {
  buckets += 1;
  const bucket = `backups-${buckets}`;
  await makeBucket(endpoint, bucket);
  const cluster = { region: cloudRegion, endpoint: proxy.endpoint };
  const node = makeNode({ cluster, env: { ...env, AWS_ENDPOINT_URL: proxy.endpoint } });
  return { node, store: await openStore({ store: `s3://${bucket}`, ...cluster }), bucket };
}

type Backup = NonNullable<DesiredService['backup']>;

/** `blog/db` is desired on the node, with its backups in this place. */
export function desire(
  { node, bucket }: Place,
  backup: Partial<Backup> = {},
  ...others: DesiredService[]
): void {
  const whole = { schedule: '0 3 * * *', retentionDays: 7, bucket, prefix, ...backup };
  node.writeDesired([aDatabase({ backup: whole }), ...others]);
}

/** Good sets of the database `app`. */
export async function writeSets({ store }: Place, days: readonly number[]): Promise<void> {
  for (const count of days) await writeSet(store, prefix, { at: daysAgo(count), databases: ['app'] });
}

export async function keysOf({ store }: Place): Promise<string[]> {
  return (await store.list('')).map(({ key }) => key);
}
