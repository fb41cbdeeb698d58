// Tells people through the configured hook: a program, an address, or both.
import type { HooksConfig } from '../config/config.ts';
import { describeError } from '../errors.ts';
import { type Argv, runProgram } from '../exec/run.ts';

export type FailureMessage = {
  version: 1;
  unit: string;
  host: string;
  node: string | null;
  result: string;
  status: string | null;
  message: string;
  count: number;
  firstAt: string;
  lastAt: string;
  invocationId: string | null;
  lastLines: readonly string[];
};

/** Why it could not be told, undefined if it was. Never throws. Each way has its own deadline. */
export async function callHook(
  hook: NonNullable<HooksConfig['failure']>,
  message: FailureMessage,
): Promise<string | undefined> {
  const ways = [callCommand(hook, message), callUrl(hook, message)];
  const settled = await Promise.allSettled(ways);
  const errors = settled.flatMap((way) => (way.status === 'rejected' ? [describeError(way.reason)] : []));
  return errors.length === 0 ? undefined : errors.join('; ');
}

async function callCommand(
  { command = [], timeoutMs }: NonNullable<HooksConfig['failure']>,
  message: FailureMessage,
): Promise<void> {
  const [program, ...args] = command.map((word) => fillIn(word, message));
  if (program === undefined) return;
  const argv: Argv = [program, ...args];
  await runProgram(argv, { input: `${JSON.stringify(message)}\n`, timeoutMs, killGraceMs: 1000 });
}

/** `{unit}`, `{result}`, `{status}` and `{message}` in an argument; other braces stay as they are. */
function fillIn(word: string, { unit, result, status, message }: FailureMessage): string {
  const values: Readonly<Record<string, string>> = { unit, result, status: status ?? '', message };
  return word.replaceAll(/\{(unit|result|status|message)\}/g, (_, name: string) => values[name] as string);
}

/** The address of a check as healthchecks knows it: below it, `/fail` tells of a failure. */
async function callUrl(
  { url, timeoutMs }: NonNullable<HooksConfig['failure']>,
  message: FailureMessage,
): Promise<void> {
  if (url === undefined) return;
  const target = new URL(url);
  target.pathname = `${target.pathname.replace(/\/+$/, '')}/fail`;
  const { postJson } = await import('../http/post.ts');
  await postJson(target, message, { timeoutMs });
}
