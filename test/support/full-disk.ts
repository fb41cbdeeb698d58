// Small disks, and how they are filled for real.
import { execFileSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { onTestFinished } from './after-test.ts';

const pageBytes = 4096;

export function mountSmall(directory: string, options: string): void {
  mkdirSync(directory, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `mode=700,${options}`, 'tmpfs', directory]);
  onTestFinished(() => void execFileSync('umount', ['-l', directory]));
}

/** But for so many pages: written, as what is only reserved may be more or less. Gives how to make room again. */
export function fillDisk(directory: string, pages = 0): () => void {
  const path = join(directory, 'filler');
  const fd = openSync(path, 'w');
  let bytes = 0;
  try {
    for (;;) bytes += writeSync(fd, Buffer.alloc(pageBytes));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  }
  ftruncateSync(fd, Math.max(0, bytes - pages * pageBytes));
  closeSync(fd);
  return () => rmSync(path, { force: true });
}
