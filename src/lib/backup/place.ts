// Where a service's backups lie.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DesiredService } from '../cluster/wire.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Paths } from '../config/paths.ts';
import { ConfigError } from '../errors.ts';
import { ensureDirectory } from '../state/directory.ts';
import { fileError } from '../state/file-error.ts';
import { isKey } from '../store/key.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { storeUrlOf } from './location.ts';

export type BackupPlace = {
  store: Store;
  /** Of the service's own keys, ending in a slash. */
  prefix: string;
};

type Backup = NonNullable<DesiredService['backup']>;

/** Reaches for nothing yet. Throws ConfigError for what names no store or no plain prefix. */
export async function openBackupStore(
  { cluster, signal }: { cluster: Pick<ClusterConfig, 'region' | 'endpoint'>; signal?: AbortSignal },
  { bucket, prefix }: Pick<Backup, 'bucket' | 'prefix'>,
): Promise<BackupPlace> {
  const { region, endpoint } = cluster;
  const place = { store: storeUrlOf(bucket), region, endpoint };
  return {
    store: await openStore(place, {
      ...(signal === undefined ? {} : { signal }),
      setting: 'backup.bucket, or cluster.backups',
    }),
    prefix: requirePrefix(prefix),
  };
}

/** An empty prefix is the whole bucket, in which a service's databases would be among everybody's. */
function requirePrefix(prefix: string): string {
  const plain = prefix.replace(/\/+$/, '');
  if (isKey(plain)) return `${plain}/`;
  throw new ConfigError(`cannot keep backups below ${JSON.stringify(prefix)}: that is no plain prefix`);
}

/** Below our own state directory nothing is ever mounted that could be missing. Throws as `fileError` says. */
export async function ensureOwnDirectory(
  { stateDir }: Pick<Paths, 'stateDir'>,
  bucket: string,
): Promise<void> {
  const url = storeUrlOf(bucket);
  if (!url.startsWith('file:')) return;
  const path = fileURLToPath(url);
  if (!path.startsWith(join(stateDir, '/'))) return;
  await ensureDirectory(path).catch((error: unknown) => {
    throw fileError('make', path, error);
  });
}
