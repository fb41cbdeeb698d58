// The timer's run: while a redeploy is under way it looks again each second, so that an end is seen at once and a start of Node.js is
// paid for once. With nothing under way it is one look. Between two looks whoever decides finds the lock free.
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { describeIdle } from '../report/idle.ts';
import { type ExecutorOptions, runExecutor } from './run.ts';

const lookMs = 1_000;
/** The unit's own deadline is after it. */
const maxSeconds = 300;

/** The value of `--window SECONDS` in milliseconds; without it one look. */
export function parseWindow(value: unknown): number {
  if (value === undefined) return 0;
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (seconds <= maxSeconds) return seconds * 1000;
  throw new UsageError(
    `cannot look for ${JSON.stringify(value)}: --window takes whole seconds, from 0 to ${maxSeconds}`,
  );
}

type Line = { text: string; action: Readonly<Record<string, unknown>> };

export async function followExecutor(
  ctx: Context,
  { windowMs, ...options }: ExecutorOptions & { windowMs: number },
): Promise<Outcome> {
  const { log, clock, signal } = ctx;
  const endsAtMs = performance.now() + windowMs;
  const told = new Map<string, Line>();
  let isBad = false;
  for (;;) {
    const look = await runExecutor(ctx, options);
    isBad ||= look.outcome === 'partial';
    const lines = readLines(look);
    const rest = lines.filter(({ text }) => !told.has(text));
    const isOver = signal.aborted || performance.now() + lookMs > endsAtMs;
    if (isOver || !lines.some(isUnderWay)) return render([...told.values()], rest, isBad);
    for (const line of rest.filter(({ action }) => action['outcome'] !== 'waits')) {
      // Now, and not when the window ends.
      log.info(line.text);
      told.set(line.text, line);
    }
    await clock.sleep(lookMs, signal);
    if (signal.aborted) return render([...told.values()], [], isBad);
  }
}

/** A look tells one line for each action. */
function readLines({ text, data }: Outcome): Line[] {
  const actions = (data?.['actions'] ?? []) as readonly Line['action'][];
  return actions.map((action, index) => ({ text: text[index] ?? '', action }));
}

/** It has just gone to its node, or has not been reported by it. */
function isUnderWay({ action: { action, outcome } }: Line): boolean {
  return outcome === 'waits' || (action === 'dispatch' && outcome === 'done');
}

/** What was told while it went on is data only. */
function render(told: readonly Line[], rest: readonly Line[], isBad: boolean): Outcome {
  const lines = [...told, ...rest];
  const hasActed = lines.some(({ action }) => action['outcome'] !== 'waits');
  return {
    outcome: isBad ? 'partial' : hasActed ? 'done' : 'nothing-to-do',
    text: lines.length === 0 ? describeIdle() : rest.map(({ text }) => text),
    data: { actions: lines.map(({ action }) => action) },
  };
}
