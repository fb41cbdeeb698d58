// `hold`: set one, end one, or list them. Expired ones go with the next write.
import { userInfo } from 'node:os';
import type { BaseContext } from '../context.ts';
import type { Outcome } from '../outcome.ts';
import { formatDuration } from '../time.ts';
import { type Hold, nodeTarget, readHolds, updateHolds } from './holds.ts';

type HoldContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

/** A hold on the same target is replaced. */
export async function setHold(
  ctx: HoldContext,
  request: { target: string; forMs: number; reason: string },
): Promise<Outcome> {
  const now = ctx.clock.now();
  const hold: Hold = {
    target: request.target,
    until: new Date(now.getTime() + request.forMs).toISOString(),
    reason: request.reason,
    by: userName(),
    since: now.toISOString(),
  };
  await updateHolds(ctx.paths, { now, log: ctx.log }, (holds) => [
    ...holds.filter(({ target }) => target !== request.target),
    hold,
  ]);
  return { outcome: 'done', text: [describeHold(hold, now)], data: { holds: [hold] } };
}

/** Without a target all of them end. */
export async function endHolds(ctx: HoldContext, target: string | undefined): Promise<Outcome> {
  const now = ctx.clock.now();
  const isMeant = (hold: Hold): boolean => target === undefined || hold.target === target;
  const ended = (await readHolds(ctx.paths, now, ctx.log)).filter(isMeant);
  if (ended.length === 0) {
    const text = target === undefined ? 'nothing is held' : `${describeTarget(target)} is not held`;
    return { outcome: 'nothing-to-do', text: [text], data: { ended: [] } };
  }
  await updateHolds(ctx.paths, { now, log: ctx.log }, (holds) => holds.filter((hold) => !isMeant(hold)));
  const text = ended.map((hold) => `${describeTarget(hold.target)}: hold ended`);
  return { outcome: 'done', text, data: { ended } };
}

export async function listHolds(ctx: HoldContext): Promise<Outcome> {
  const now = ctx.clock.now();
  const holds = await readHolds(ctx.paths, now, ctx.log);
  const text = holds.length === 0 ? ['nothing is held'] : holds.map((hold) => describeHold(hold, now));
  return { outcome: 'done', text, data: { holds } };
}

/** `blog/web: held for another 59m 30s, until ..., by root: reason`. */
function describeHold(hold: Hold, now: Date): string {
  const left = formatDuration(Math.max(0, Date.parse(hold.until) - now.getTime()));
  return `${describeTarget(hold.target)}: held for another ${left}, until ${hold.until}, by ${hold.by}: ${hold.reason}`;
}

function describeTarget(target: string): string {
  return target === nodeTarget ? 'this node' : target;
}

/** A user id without an entry in the user database has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
