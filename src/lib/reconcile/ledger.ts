// A state file held in memory and written before each change takes effect. Writes of one ledger never overlap.
import type { Log } from '../report/log.ts';
import { type DocumentDefinition, readDocument, writeDocument } from '../state/document.ts';

export type Ledger<T> = {
  readonly value: T;
  /** Resolves once the changed value is on disk. An unchanged one (same object) is not written. */
  update(change: (value: T) => T): Promise<void>;
};

/** `lost`: there was a file, and neither it nor its previous copy could be used. */
export type LoadedLedger<T> = Ledger<T> & { readonly found: 'found' | 'missing' | 'lost' };

/** Reads the file; a missing or lost one gives `empty`, which is not written until it changes. */
export async function openLedger<T extends object>(
  path: string,
  definition: DocumentDefinition<T>,
  { empty, now, log, readOnly = false }: { empty: T; now: Date; log: Log; readOnly?: boolean },
): Promise<LoadedLedger<T>> {
  const read = await readDocument(path, definition, { now, log, repair: !readOnly });
  const usable = read.kind === 'ok' || read.kind === 'recovered';
  let value = usable ? read.value : empty;
  let queue: Promise<void> = Promise.resolve();
  const update = (change: (value: T) => T): Promise<void> => {
    const changed = change(value);
    if (changed === value) return queue;
    value = changed;
    if (readOnly) return queue;
    // A failed write must fail its own caller only, and leave the queue open for the next.
    const written = queue.then(() => writeDocument(path, definition, value));
    queue = written.catch(() => {});
    return written;
  };
  return {
    get value() {
      return value;
    },
    found: read.kind === 'ok' || read.kind === 'recovered' ? 'found' : read.kind,
    update,
  };
}
