// Whether the disk that a directory is on answers. What is asked of one that does not, as of a network whose server is gone, never
// comes back: our own process would keep a thread for it, and could not end. So a program asks first, which can be killed.
import { spawn } from 'node:child_process';
import { waitUntil } from '../abort.ts';

/** Whatever the answer is. Throws the signal's reason where that comes first. */
export async function waitForAnswer(dir: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  // With its entries: what is known of the directory itself may be remembered.
  const child = spawn('/bin/ls', ['-f', '--', dir], { stdio: 'ignore', env: {} });
  const ended = new Promise<void>((resolve, reject) => {
    child.once('exit', () => resolve());
    child.once('error', reject);
  });
  try {
    await waitUntil(signal, () => ended);
  } finally {
    child.kill('SIGKILL');
    // One that hangs in the kernel is not waited for.
    child.unref();
  }
}
