// Asks a person before something is removed or restarted. Where nobody can be asked, --yes has to be there.
import { createInterface } from 'node:readline/promises';
import type { BaseContext } from '../lib/context.ts';
import { UsageError } from '../lib/errors.ts';

/** Returns once it is confirmed; throws UsageError where it is not. */
export async function requireConfirmation(
  base: BaseContext,
  { question, yes }: { question: string; yes: boolean },
): Promise<void> {
  if (yes) return;
  if (!base.interactive) {
    throw new UsageError(`${question} Nobody can be asked here: add --yes if that is meant`);
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await prompt.question(`${question} [y/N] `, { signal: base.signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('not confirmed: nothing was done');
  } finally {
    prompt.close();
  }
}
