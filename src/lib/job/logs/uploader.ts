// The frames of a job's log on their way to the server, in numbered chunks. A number means the same bytes for ever: which
// they are is written down before they are sent, so that after a crash exactly these go out under it again.
import type { LogProgress } from '../../jobs/records.ts';
import { limits } from '../../ploy/limits.ts';
import { createByteStore } from './byte-store.ts';
import type { SendChunk } from './send.ts';

export type Uploader = {
  /** Bytes of whole frames. Waits while as much is under way as may be. Throws what a send has thrown. */
  write(bytes: Buffer): Promise<void>;
  /** All that was written is with the server, or given up, when it resolves. */
  close(): Promise<void>;
  /** Leaves what is not under way; resolves when nothing is. */
  abandon(): Promise<void>;
};

export type UploaderOptions = {
  progress(): LogProgress;
  send: SendChunk;
};

/** Takes the stream from its start; what is with the server already is left out. */
export function createUploader(options: UploaderOptions): Uploader {
  return new ChunkQueue(options);
}

/** One chunk is sent while the next one is filled; more is not taken. */
class ChunkQueue implements Uploader {
  readonly #send: SendChunk;
  #skip: number;
  /** The chunk that a run before has written down: its bounds are given. */
  #resumed: LogProgress['pending'];
  #fromBytes: number;
  readonly #filling = createByteStore(limits.chunkBytes);
  #sending: Promise<void> | undefined;
  #failure: { error: unknown } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;

  constructor({ progress, send }: UploaderOptions) {
    const { sentBytes, pending } = progress();
    this.#send = send;
    this.#skip = sentBytes;
    this.#fromBytes = sentBytes;
    this.#resumed = pending;
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    const left = await this.#fillResumed(bytes.subarray(skipped));
    if (left.length === 0) return;
    const { size } = this.#filling;
    if (size > 0 && size + left.length > limits.chunkBytes) await this.#sendNext();
    this.#add(left);
  }

  async close(): Promise<void> {
    await this.#sendNext();
    await this.#settle();
  }

  async abandon(): Promise<void> {
    clearTimeout(this.#timer);
    this.#failure ??= { error: new Error('abandoned') };
    while (this.#sending !== undefined) await this.#sending;
  }

  /** Gives what belongs to chunks after it. */
  async #fillResumed(bytes: Buffer): Promise<Buffer> {
    if (this.#resumed === undefined || bytes.length === 0) return bytes;
    const { toBytes } = this.#resumed;
    const wanted = bytes.subarray(0, toBytes - this.#fromBytes - this.#filling.size);
    this.#filling.add(wanted);
    if (this.#fromBytes + this.#filling.size === toBytes) await this.#sendNext();
    return bytes.subarray(wanted.length);
  }

  #add(bytes: Buffer): void {
    this.#filling.add(bytes);
    this.#timer ??= setTimeout(() => {
      this.#isDue = true;
      if (this.#sending === undefined) this.#start();
    }, limits.chunkAgeMs);
  }

  async #sendNext(): Promise<void> {
    await this.#settle();
    this.#start();
  }

  async #settle(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #start(): void {
    if (this.#filling.size === 0 || this.#failure !== undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
    const { bytes, giveBack } = this.#filling.take();
    const fromBytes = this.#fromBytes;
    const toBytes = fromBytes + bytes.length;
    const resumedNo = this.#resumed?.toBytes === toBytes ? this.#resumed.chunkNo : undefined;
    this.#resumed = undefined;
    this.#fromBytes = toBytes;
    this.#sending = this.#send({ bytes, fromBytes, toBytes, resumedNo })
      .catch((error: unknown) => {
        this.#failure = { error };
      })
      .finally(() => {
        this.#sending = undefined;
        giveBack();
        if (this.#isDue) this.#start();
      });
  }
}
