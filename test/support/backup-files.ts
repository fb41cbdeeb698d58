// Backups in a real store, written as runs write them: for what reads, removes or judges them.
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Evidence, Manifest } from '../../src/lib/backup/manifest.ts';
import { dumpKey, setKey, stampOf } from '../../src/lib/backup/names.ts';
import { renderDocument } from '../../src/lib/cluster/wire.ts';
import type { Store } from '../../src/lib/store/store.ts';
import { aManifest } from './inventories.ts';

export type WrittenSet = {
  at: Date;
  databases: readonly string[];
  failures?: Manifest['failures'];
  /** Only of these: a run that was killed has none. */
  isFinished?: boolean;
  evidence?: Evidence['databases'];
};

/** The dumps, the globals and the manifest of one run, in the order of a run. */
export async function writeSet(store: Store, prefix: string, set: WrittenSet): Promise<void> {
  const { at, databases, failures = [], isFinished = true, evidence } = set;
  const stamp = stampOf(at);
  const write = async (key: string, text: string) => {
    const bytes = gzipSync(text);
    await store.put(key, bytes);
    return { key, sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  };
  const globals = await write(setKey(prefix, stamp, 'globals'), 'CREATE ROLE app;\n');
  const dumps: Manifest['databases'] = [];
  for (const database of databases) {
    const text = `-- ${database} of ${stamp}\n`;
    const file = await write(dumpKey(prefix, database, stamp), text);
    dumps.push({ database, rawBytes: text.length, tables: [], ...file });
  }
  if (!isFinished) return;
  const manifest = aManifest(at, {
    databases: dumps,
    failures,
    globals: { ...globals, passwords: 'included' },
  });
  await store.put(setKey(prefix, stamp, 'manifest'), renderDocument(manifest));
  if (evidence === undefined) return;
  const document: Evidence = { version: 1, checkedAt: at.toISOString(), databases: [...evidence] };
  await store.put(setKey(prefix, stamp, 'evidence'), renderDocument(document));
}
