// A file that grows, copied to a stream as far as it goes. When a job is taken up again its files are cut and written again with
// the same bytes: whoever reads along waits at its place until they have come there.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { StepError, systemErrorCode } from '../../errors.ts';
import { escapeControls } from '../../report/printable.ts';
import { fileError } from '../../state/file-error.ts';

export type Sink = Pick<NodeJS.WritableStream, 'write'> & { readonly isTTY?: boolean };

export type Tail = {
  /** Writes what has come since the last time. */
  copy(signal: AbortSignal): Promise<void>;
  /** Nobody reads what is written any more. */
  readonly isOver: boolean;
};

const pieceBytes = 256 * 1024;

export function createTail(path: string, sink: Sink): Tail {
  const render = createRenderer(sink.isTTY === true);
  const piece = Buffer.alloc(pieceBytes);
  let position = 0;
  let isOver = false;
  const copyFrom = async (handle: FileHandle, signal: AbortSignal): Promise<void> => {
    while (!isOver && !signal.aborted) {
      const { bytesRead } = await handle.read(piece, 0, pieceBytes, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      isOver = !(await writeAll(sink, render(piece.subarray(0, bytesRead))));
    }
  };
  return {
    get isOver() {
      return isOver;
    },
    copy: async (signal) => {
      const handle = await openFile(path);
      if (handle === undefined) return;
      try {
        await copyFrom(handle, signal);
      } finally {
        await handle.close();
      }
    },
  };
}

/** Undefined where it is not there yet, or any more. */
async function openFile(path: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    return await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  }
}

/** A terminal would obey what a job writes; anything else gets the bytes as they are. */
function createRenderer(isTerminal: boolean): (bytes: Buffer) => Buffer | string {
  if (!isTerminal) return (bytes) => bytes;
  const decoder = new TextDecoder();
  return (bytes) => escapeControls(decoder.decode(bytes, { stream: true }));
}

/** False where the reader has gone, as `head` does. */
function writeAll(sink: Sink, content: Buffer | string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    sink.write(content as string, (error?: Error | null) => {
      if (!error) return resolve(true);
      const code = systemErrorCode(error);
      if (code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED') return resolve(false);
      reject(new StepError(`cannot print the log: ${error.message}`, { cause: error }));
    });
  });
}
