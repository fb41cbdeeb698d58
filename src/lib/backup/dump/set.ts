// One set in the store: the dumps of one run, and what the run says of them, its manifest last.
import { rm } from 'node:fs/promises';
import { renderDocument } from '../../cluster/wire.ts';
import type { Log } from '../../report/log.ts';
import type { Store } from '../../store/store.ts';
import type { Manifest } from '../manifest.ts';
import { setKey } from '../names.ts';
import { type Captured, captureDump } from './capture.ts';
import { type DumpDirectory, requireSpace } from './temp.ts';
import { uploadCaptured } from './upload.ts';

export type SetPlace = {
  store: Store;
  prefix: string;
  stamp: string;
  directory: DumpDirectory;
  signal: AbortSignal;
  log: Log;
};

export type SetWriter = {
  /** Captures it in a file, puts it under the key, and leaves nothing of the file. */
  write(key: string, source: DumpSource): Promise<Captured>;
  writeManifest(manifest: Manifest): Promise<void>;
};

export type DumpSource = {
  chunks: AsyncIterable<Uint8Array>;
  /** How large the last one was; null where that is not known. */
  lastBytes: number | null;
  /** Called when it has come whole, before it is given its name. What it throws ends it. */
  whenCaptured(): Promise<void>;
};

export function openSet(place: SetPlace): SetWriter {
  const { store, prefix, stamp } = place;
  let cleared: Promise<void> | undefined;
  const clear = (): Promise<void> => {
    cleared ??= removeEarlier(place);
    return cleared;
  };
  return {
    write: async (key, { chunks, lastBytes, whenCaptured }) => {
      const path = place.directory.next();
      try {
        await requireSpace(place.directory, lastBytes);
        const captured = await captureDump(path, chunks);
        await whenCaptured();
        await clear();
        await uploadCaptured(place, key, captured);
        return captured;
      } finally {
        await rm(path, { force: true });
      }
    },
    writeManifest: async (manifest) => {
      await store.put(setKey(prefix, stamp, 'manifest'), renderDocument(manifest));
    },
  };
}

/** What an earlier try of this set has said says nothing of the dumps that are about to take the place of its own. */
async function removeEarlier({ store, prefix, stamp }: SetPlace): Promise<void> {
  for (const file of ['manifest', 'evidence', 'pruned'] as const) {
    const key = setKey(prefix, stamp, file);
    if ((await store.head(key)) !== undefined) await store.delete(key);
  }
}
