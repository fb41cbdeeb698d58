// The output of a job beside its artifacts, as the container wrote it. It is made again with the stream, from its start.
import { type FileHandle, open } from 'node:fs/promises';
import type { LogPart } from '../../docker/types.ts';
import { fileError } from '../../state/file-error.ts';
import { createByteStore } from './byte-store.ts';

export type LogFiles = { write(part: LogPart): Promise<void> | void; close(): Promise<void> };

const flushBytes = 256 * 1024;

/** Cuts what a run before has left. */
export async function openLogFiles(paths: { stdout: string; stderr: string }): Promise<LogFiles> {
  const stdout = await openLogFile(paths.stdout);
  const stderr = await openLogFile(paths.stderr);
  return {
    write: ({ stream, bytes }) => (stream === 'stdout' ? stdout : stderr).write(bytes),
    close: async () => {
      await stdout.close();
      await stderr.close();
    },
  };
}

async function openLogFile(path: string) {
  const handle: FileHandle = await open(path, 'w', 0o600).catch((error: unknown) => {
    throw fileError('write', path, error);
  });
  const kept = createByteStore(flushBytes);
  const flush = async (): Promise<void> => {
    const { bytes, giveBack } = kept.take();
    await handle.writeFile(bytes).catch((error: unknown) => {
      throw fileError('write', path, error);
    });
    giveBack();
  };
  // For whoever reads along.
  const timer = setInterval(() => void (kept.size > 0 && pending === undefined && start()), 1000);
  let pending: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;
  const start = (): Promise<void> => {
    pending = flush()
      .catch((error: unknown) => {
        failure = { error };
      })
      .finally(() => {
        pending = undefined;
      });
    return pending;
  };
  const write = (bytes: Uint8Array): Promise<void> | void => {
    kept.add(bytes);
    if (kept.size < flushBytes) return undefined;
    return (async () => {
      if (pending !== undefined) await pending;
      await start();
      if (failure !== undefined) throw failure.error;
    })();
  };
  return {
    write,
    close: async () => {
      clearInterval(timer);
      while (pending !== undefined) await pending;
      if (kept.size > 0 && failure === undefined) await flush();
      await handle.close();
    },
  };
}
