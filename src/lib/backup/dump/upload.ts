// A captured dump into the store. It gets its name there only when all of it has come: a driver publishes whole objects alone.
// On the way the file is hashed again and compared with what the dump was, and afterwards its size is asked for, and its hash: a
// directory's object is read back, while each request to S3 was signed with the hash of its body, which the service has checked.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, StepError, UnavailableError } from '../../errors.ts';
import type { Log } from '../../report/log.ts';
import type { Store } from '../../store/store.ts';
import type { Captured } from './capture.ts';
import { createCollector } from './memory.ts';

/** Waits between tries, in milliseconds. The driver has its own for each request. */
const pausesMs = [1000, 5000];
/** Rights and clocks do not come by themselves. */
const settledCodes = new Set(['denied', 'clock', 'INTERRUPTED']);

/** Throws what the store throws, and StepError where another thing has come there than was sent. */
export async function uploadCaptured(
  { store, signal, log }: { store: Store; signal: AbortSignal; log: Log },
  key: string,
  captured: Captured,
): Promise<void> {
  for (let tried = 0; ; tried++) {
    try {
      await store.putStream(key, readAgain(captured, signal));
      await requireWhole(store, key, captured.sizeBytes);
      if (store.url.startsWith('file:')) await requireSame(store, key, { captured, signal });
      return;
    } catch (error) {
      const pauseMs = pausesMs[tried];
      if (pauseMs === undefined || signal.aborted || !isPassing(error)) throw error;
      log.warning(`the upload is tried again: ${describeError(error)}`, { key });
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof UnavailableError && !settledCodes.has(error.code);
}

async function* readAgain({ path, sha256 }: Captured, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  const collect = createCollector();
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    if (signal.aborted) throw new StepError('interrupted', { code: 'interrupted' });
    hash.update(chunk as Buffer);
    yield chunk as Buffer;
    collect((chunk as Buffer).length);
  }
  if (hash.digest('hex') !== sha256) {
    throw new StepError('what was captured reads back differently: is the disk sound?', { code: 'damaged' });
  }
}

async function requireWhole(store: Store, key: string, sizeBytes: number): Promise<void> {
  const entry = await store.head(key);
  if (entry?.sizeBytes === sizeBytes) return;
  const found = entry === undefined ? 'is not there' : `has ${entry.sizeBytes} bytes`;
  throw new UnavailableError(
    `cannot write ${JSON.stringify(key)} to ${store.url}: it ${found}, and ${sizeBytes} were sent`,
    { code: 'incomplete' },
  );
}

async function requireSame(
  store: Store,
  key: string,
  { captured, signal }: { captured: Captured; signal: AbortSignal },
): Promise<void> {
  const hash = createHash('sha256');
  const collect = createCollector();
  for await (const chunk of (await store.getStream(key)) ?? []) {
    if (signal.aborted) throw new StepError('interrupted', { code: 'interrupted' });
    hash.update(chunk);
    collect(chunk.length);
  }
  if (hash.digest('hex') === captured.sha256) return;
  throw new StepError(`cannot write ${JSON.stringify(key)} to ${store.url}: it reads back differently`, {
    code: 'damaged',
  });
}
