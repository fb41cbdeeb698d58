// The frames of a job's log on their way to the server, in numbered chunks. A number means the same bytes for ever: which
// they are is written down before they are sent, so that after a crash exactly these go out under it again.
import type { LogProgress } from '../../jobs/records.ts';
import { limits } from '../../ploy/limits.ts';
import type { SendChunk } from './send.ts';

export type Uploader = {
  /** Bytes of whole frames. Waits while as much is under way as may be. Throws what a send has thrown. */
  write(bytes: Buffer): Promise<void>;
  /** All that was written is with the server, or given up, when it resolves. */
  close(): Promise<void>;
  /** Leaves what is not sent. */
  abandon(): void;
};

export type UploaderOptions = {
  progress(): LogProgress;
  send: SendChunk;
};

/** Takes the stream from its start; what is with the server already is left out. */
export function createUploader({ progress, send }: UploaderOptions): Uploader {
  let { sentBytes: skip, pending: resumed } = progress();
  let fromBytes = skip;
  let buffered: Buffer[] = [];
  let size = 0;
  let sending: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isDue = false;

  const startSend = (): void => {
    if (size === 0 || failure !== undefined) return;
    clearTimeout(timer);
    timer = undefined;
    isDue = false;
    const bytes = Buffer.concat(buffered, size);
    const toBytes = fromBytes + size;
    const chunk = {
      bytes,
      fromBytes,
      toBytes,
      resumedNo: resumed?.toBytes === toBytes ? resumed.chunkNo : undefined,
    };
    if (chunk.resumedNo !== undefined) resumed = undefined;
    buffered = [];
    size = 0;
    fromBytes = toBytes;
    sending = send(chunk)
      .catch((error: unknown) => {
        failure = { error };
      })
      .finally(() => {
        sending = undefined;
        if (isDue && resumed === undefined) startSend();
      });
  };
  const sendNow = async (): Promise<void> => {
    while (sending !== undefined) await sending;
    if (failure !== undefined) throw failure.error;
    startSend();
  };
  const add = (bytes: Buffer): void => {
    buffered.push(bytes);
    size += bytes.length;
    if (resumed !== undefined) return;
    timer ??= setTimeout(() => {
      isDue = true;
      if (sending === undefined) startSend();
    }, limits.chunkAgeMs);
  };
  const addNew = async (bytes: Buffer): Promise<void> => {
    if (size > 0 && size + bytes.length > limits.chunkBytes) await sendNow();
    add(bytes);
  };
  return {
    write: async (bytes) => {
      if (failure !== undefined) throw failure.error;
      const skipped = Math.min(skip, bytes.length);
      skip -= skipped;
      let left = bytes.subarray(skipped);
      if (resumed !== undefined) {
        const wanted = left.subarray(0, resumed.toBytes - fromBytes - size);
        left = left.subarray(wanted.length);
        if (wanted.length > 0) add(wanted);
        if (fromBytes + size === resumed.toBytes) await sendNow();
      }
      if (left.length > 0) await addNew(left);
    },
    close: async () => {
      await sendNow();
      while (sending !== undefined) await sending;
      if (failure !== undefined) throw failure.error;
    },
    abandon: () => {
      clearTimeout(timer);
      failure ??= { error: new Error('abandoned') };
    },
  };
}
