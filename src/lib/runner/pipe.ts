// One pipe for both stdout and stderr, so that what is written first comes first. Node.js makes a socket for each of them, which
// `> /dev/stderr` in a script cannot open; a named pipe is the only other kind that it can be given.
import { execFile } from 'node:child_process';
import { closeSync, constants, fchmodSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

export type OutputPipe = {
  /** For the command. */
  writeFd: number;
  reader: Socket;
  /** Closes our own end for writing: what is left then belongs to the command. A second call does nothing. */
  handOver(): void;
};

const makeMs = 10_000;
let count = 0;

/** Its name is gone when this returns. */
export async function openPipe(directory: string): Promise<OutputPipe> {
  count += 1;
  const path = join(directory, `.pipe-${process.pid}-${count}`);
  rmSync(path, { force: true });
  await promisify(execFile)('mkfifo', ['-m', '600', '--', path], { timeout: makeMs });
  try {
    // Only the reader's end may be non-blocking: the other one is a description that the command shares.
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeFd = openSync(path, constants.O_WRONLY);
    rmSync(path);
    // Without a name it is open to those alone that have it already, who may be another user.
    fchmodSync(writeFd, 0o666);
    const reader = new Socket({ fd: readFd, readable: true, writable: false });
    let isOpen = true;
    const handOver = (): void => {
      if (isOpen) closeSync(writeFd);
      isOpen = false;
    };
    return { writeFd, reader, handOver };
  } finally {
    rmSync(path, { force: true });
  }
}
