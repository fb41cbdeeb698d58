// A store of small documents and large objects under slash-separated keys: where desired state, status, shards and
// backups live. Drivers: file.ts. `contract` in test/support proves a driver.
import { ReeveError } from '../errors.ts';
import { ExitCode } from '../exit-codes.ts';

export type StoredDocument = { text: string; etag: string; updatedAt: Date };
export type StoredEntry = { key: string; etag: string; sizeBytes: number; updatedAt: Date };

/** `ifMatch`: only over the version read; `ifAbsent`: only where nothing is. */
export type PutCondition = { ifMatch: string } | { ifAbsent: true };

export type Store = {
  readonly url: string;
  /** The document's text (UTF-8), undefined where there is none. Throws UnavailableError when it cannot be told. */
  get(key: string): Promise<StoredDocument | undefined>;
  /** Writes the whole document or nothing. Throws PreconditionError when the condition does not hold. */
  put(key: string, body: string | Uint8Array, condition?: PutCondition): Promise<{ etag: string }>;
  /** All entries below a prefix, sorted by key in byte order. */
  list(prefix: string): Promise<readonly StoredEntry[]>;
  /** Removing what is not there is success. */
  delete(key: string): Promise<void>;
  head(key: string): Promise<StoredEntry | undefined>;
  /** Streams an object of unknown length; nothing is under the key until all of it is. */
  putStream(key: string, source: AsyncIterable<Uint8Array>): Promise<StoredEntry>;
  getStream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
};

/** Another writer was there first: read again, decide again. */
export class PreconditionError extends ReeveError {
  constructor(key: string) {
    super(`cannot write ${key}: it has changed since it was read`, ExitCode.failed, { code: 'precondition' });
  }
}
