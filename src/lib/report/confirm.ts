// Asks the person at the terminal before something is removed or restarted for them.
import { createInterface } from 'node:readline/promises';
import type { BaseContext } from '../context.ts';
import { UsageError } from '../errors.ts';

/** True if it may go on. Where nobody can be asked, only `--yes` says so: throws UsageError without it. */
export async function confirm(
  ctx: Pick<BaseContext, 'interactive' | 'signal'>,
  yes: boolean,
  question: string,
): Promise<boolean> {
  if (yes) return true;
  if (!ctx.interactive) {
    // What comes before tells people at a terminal what it is about.
    const asked = question.split('\n').at(-1);
    throw new UsageError(`cannot ask "${asked}" without a terminal: say --yes`);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // End of input and Ctrl-C close it without an answer: that is a no.
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  terminal.once('SIGINT', () => terminal.close());
  try {
    const answer = await Promise.race([
      terminal.question(`${question} [y/N] `, { signal: ctx.signal }),
      closed,
    ]);
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    if (ctx.signal.aborted) return false;
    throw error;
  } finally {
    terminal.close();
  }
}
