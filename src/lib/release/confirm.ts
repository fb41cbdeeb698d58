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
  if (!ctx.interactive) throw new UsageError(`cannot ask "${question}" without a terminal: say --yes`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal: ctx.signal });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
