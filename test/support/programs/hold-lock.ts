// Takes one lock, says `holding` or the error, and holds it until it is told to stop or killed. `hold-lock.ts DIR NAME`.
// Told `child`, it first starts a sleeper in a session of its own (detached), with everything it could inherit.
import { spawn } from 'node:child_process';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { parseLockName } from '../../../src/lib/lock/names.ts';
import { systemClock } from '../../../src/lib/time.ts';

const [directory = '', name = ''] = process.argv.slice(2);
try {
  const lock = await acquireLock(directory, parseLockName(name), {
    command: `reeve ${name}`,
    runId: 'held',
    clock: systemClock,
  });
  process.stdout.write('holding\n');
  for await (const line of process.stdin) {
    if (String(line).startsWith('child')) {
      const child = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
      child.unref();
      process.stdout.write(`child ${child.pid}\n`);
    } else break;
  }
  lock.release();
} catch (error) {
  process.stdout.write(`${(error as Error).name} ${(error as Error).message}\n`);
}
