// `reeve lock NAME -- COMMAND`: a person's or a runbook's own command, with its own environment and terminal, while we
// hold the lock. The descriptor is not handed down: what the command leaves behind must not keep the lock.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CommandError, systemErrorCode } from '../errors.ts';
import type { LockName } from './names.ts';
import { type LockContext, withLock } from './with-locks.ts';

export type CommandUnderLock = {
  name: LockName;
  argv: readonly [string, ...string[]];
  waitMs: number;
  /** stdout belongs to our own answer, so the command's goes to stderr. */
  stdoutToStderr: boolean;
};

/** The command's exit status, 128+n if a signal ended it. Throws BusyError if the lock is held. */
export async function runUnderLock(ctx: LockContext, command: CommandUnderLock): Promise<number> {
  // The program only: its arguments may hold secrets, and the holder's text ends up in other runs' logs.
  const shown = { ...ctx, command: `lock ${command.name} -- ${command.argv[0].slice(0, 80)}` };
  return await withLock(shown, command.name, () => runCommand(command), { waitMs: command.waitMs });
}

/** A terminal sends its signals to the whole foreground group, so that the command has had its SIGINT already. */
const forwarded: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGINT'];

function runCommand({ argv, stdoutToStderr }: CommandUnderLock): Promise<number> {
  const [program, ...args] = argv;
  const hasTerminal = process.stdin.isTTY === true;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['inherit', stdoutToStderr ? 2 : 'inherit', 'inherit'] });
    // A handler for each: by default SIGHUP would end us, and the lock with us, while the command runs on.
    const forward = (signal: NodeJS.Signals): void => {
      if (signal !== 'SIGINT' || !hasTerminal) child.kill(signal);
    };
    for (const signal of forwarded) process.on(signal, forward);
    const finish = (): void => {
      for (const signal of forwarded) process.off(signal, forward);
    };
    child.once('error', (error) => {
      finish();
      const code = systemErrorCode(error) ?? 'start';
      const cause = code === 'ENOENT' ? 'no such program' : code;
      reject(
        new CommandError(`cannot run ${JSON.stringify(program)}: ${cause}`, { argv }, { cause: error, code }),
      );
    });
    child.once('close', (status, signal) => {
      finish();
      resolve(status ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}
