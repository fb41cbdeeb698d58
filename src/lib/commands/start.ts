// Starting `command run` for a command, and stopping its unit.
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { hasUnits, startOwn } from '../exec/own.ts';
import { runSystemctl } from '../exec/systemd.ts';
import type { CommandRecord } from './records.ts';

function commandUnit(key: string): string {
  return `reeve-command@${key}.service`;
}

/** For one of the same name that was deleted: its record is gone, and its process about to be. */
const waitSeconds = '20';

export async function startCommand(ctx: Pick<BaseContext, 'paths' | 'signal'>, key: string): Promise<void> {
  const words = ['command', 'run', '--wait', waitSeconds];
  await startOwn(ctx, { what: `command ${key}`, unit: commandUnit(key), words, key });
}

/** Starts what was taken before then and not begun: whoever takes a command starts it at once. Twice is as good as once. */
export async function startLost(
  ctx: Pick<BaseContext, 'paths' | 'signal' | 'clock' | 'log'>,
  key: string,
  { state, acceptedAt }: CommandRecord,
  before: Date,
): Promise<void> {
  if (state.kind !== 'accepted') return;
  const takenAtMs = Date.parse(acceptedAt);
  // A clock may have been put back.
  if (takenAtMs >= before.getTime() && takenAtMs <= ctx.clock.now().getTime()) return;
  await startCommand(ctx, key).catch((error: unknown) => ctx.log.warning(describeError(error)));
}

/** A stop of ours does not interrupt what is done in moments: whoever was told of a command finds it begun, or deleted. */
export function lasting<Ctx extends Pick<BaseContext, 'signal'>>(ctx: Ctx): Ctx {
  return { ...ctx, signal: new AbortController().signal };
}

/** Resolves once systemd has it in its queue. Without units, whoever runs the command looks for a note of its end. */
export async function stopCommand(ctx: Pick<BaseContext, 'signal'>, key: string): Promise<void> {
  if (hasUnits()) await runSystemctl(['stop', '--no-block', commandUnit(key)], ctx);
}
