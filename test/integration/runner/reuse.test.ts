// What a command leaves may hold its pipe for seconds after its end, and its number may be another process's by then.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../../../src/lib/runner/run.ts';
import { makeTempDir } from '../../support/temp.ts';

/** The kernel gives the next process this number, unless another one comes first. */
async function startAs(wanted: number): Promise<boolean> {
  writeFileSync('/proc/sys/kernel/ns_last_pid', String(wanted - 1));
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  await new Promise((resolve) => child.once('spawn', resolve));
  if (child.pid !== wanted) {
    child.kill('SIGKILL');
    return false;
  }
  stranger = child;
  onTestFinished(() => void child.kill('SIGKILL'));
  return true;
}

let stranger: ReturnType<typeof spawn> | undefined;

it('a command that is over ends nobody who has its number by now', async () => {
  let pid = 0;
  const ending = runCommand(
    { argv: { shell: 'setsid sleep 8 & exit 3' }, dir: '/', env: { PATH: '/usr/bin:/bin' } },
    {
      ...{ deadlineMs: 30_000, killGraceMs: 1_000, maxOutputBytes: 1_024, scratchDir: makeTempDir() },
      signal: new AbortController().signal,
      onStarted: (started) => {
        pid = started;
      },
    },
  );
  await expect.poll(() => pid).toBeGreaterThan(0);
  await expect.poll(async () => await startAs(pid), { interval: 20, timeout: 4_000 }).toBe(true);
  expect(await ending).toMatchObject({ kind: 'exited', code: 3 });
  await new Promise((resolve) => setImmediate(resolve));
  expect([stranger?.exitCode, stranger?.signalCode]).toEqual([null, null]);
}, 30_000);
