// The output of a job beside its artifacts, as the container wrote it. It is made again with the stream, from its start.
import { type FileHandle, open } from 'node:fs/promises';
import type { LogPart } from '../../docker/types.ts';
import { fileError } from '../../state/file-error.ts';
import { createByteStore } from './byte-store.ts';

export type LogFiles = { write(part: LogPart): Promise<void> | void; close(): Promise<void> };

const flushBytes = 256 * 1024;

/**
 * Cuts what a run before has left. Never throws, as the server gets the log all the same: what cannot be written, on a disk that the
 * job itself may have filled, is told once, and from then on nothing is.
 */
export async function openLogFiles(
  paths: { stdout: string; stderr: string },
  onLost: (error: unknown) => Promise<void>,
): Promise<LogFiles> {
  const opened: LogFile[] = [];
  let isLost = false;
  const orLose = async (work: () => Promise<void> | void): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!isLost) {
        isLost = true;
        await onLost(error);
      }
    }
  };
  await orLose(async () => {
    for (const path of [paths.stdout, paths.stderr]) opened.push(await openLogFile(path));
  });
  const [stdout, stderr] = opened;
  return {
    write: ({ stream, bytes }) => {
      if (isLost) return undefined;
      const writing = (stream === 'stdout' ? stdout : stderr)?.write(bytes);
      return writing === undefined ? undefined : orLose(() => writing);
    },
    close: async () => {
      for (const file of opened) await orLose(file.close);
    },
  };
}

type LogFile = { write(bytes: Uint8Array): Promise<void> | void; close(): Promise<void> };

async function openLogFile(path: string): Promise<LogFile> {
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
        clearInterval(timer);
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
      if (kept.size > 0 && failure === undefined) await start();
      await handle.close();
      if (failure !== undefined) throw failure.error;
    },
  };
}
