// `reeve lock NAME -- COMMAND...`: run a command under one of reeve's locks.
import { UsageError } from '../lib/errors.ts';
import type { ExitCode } from '../lib/exit-codes.ts';
import { parseLockName } from '../lib/lock/names.ts';
import { runUnderLock } from '../lib/lock/run-under-lock.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base, args, options }: CommandInput): Promise<Outcome> {
  const [name = '', program, ...rest] = args;
  if (program === undefined) throw new UsageError('a command is missing: reeve lock NAME -- COMMAND...');
  const status = await runUnderLock(base, {
    name: parseLockName(name),
    argv: [program, ...rest],
    waitMs: parseWait(options['wait']),
    stdoutToStderr: options['json'] === true,
  });
  return {
    outcome: status === 0 ? 'done' : 'failed',
    // The command's own status, as flock(1), env(1) and ssh(1) hand it on.
    exitCode: status as ExitCode,
    text: [],
    data: { lock: name, exitCode: status },
  };
}
