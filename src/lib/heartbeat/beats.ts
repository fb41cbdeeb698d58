// `backoff/<control plane>.json`: when it was told last, and when it is told next. Owned by the heartbeat, under its lock.
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { requireText } from '../state/shape.ts';
import type { Beats } from './plan-beat.ts';

/** Who hands out what. */
export type Plane = 'jobs' | 'commands';

type BeatsContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

const beatsDocument = defineDocument<Beats>({
  version: 1,
  parse: (raw) => {
    const { failures, lastOkAt, lastError, origin } = raw;
    if (!Number.isSafeInteger(failures)) throw new TypeError('failures is no number');
    return {
      lastTriedAt: requireText(raw, 'lastTriedAt'),
      nextAt: requireText(raw, 'nextAt'),
      failures: failures as number,
      ...(typeof origin === 'string' ? { origin } : {}),
      ...(typeof lastOkAt === 'string' ? { lastOkAt } : {}),
      ...(typeof lastError === 'string' ? { lastError } : {}),
    };
  },
});

export async function readBeats(ctx: BeatsContext, plane: Plane): Promise<Beats | undefined> {
  const options = { now: ctx.clock.now(), log: ctx.log };
  const read = await readDocument(beatsPath(ctx, plane), beatsDocument, options);
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
}

/** What another control plane was told says nothing about this one. */
export async function readBeatsTo(
  ctx: BeatsContext,
  plane: Plane,
  origin: string | undefined,
): Promise<Beats | undefined> {
  const beats = await readBeats(ctx, plane);
  return beats?.origin === undefined || beats.origin === origin ? beats : undefined;
}

/** Not written, the next timer tries again: what the control plane was told stands, and what went wrong is told as it was. */
export async function noteBeats(ctx: BeatsContext, plane: Plane, beats: Beats): Promise<void> {
  await writeDocument(beatsPath(ctx, plane), beatsDocument, beats).catch((error: unknown) => {
    ctx.log.warning(`it is not noted when the next heartbeat of ${plane} is due: ${describeError(error)}`);
  });
}

function beatsPath({ paths }: BeatsContext, plane: Plane): string {
  return join(paths.stateDir, 'backoff', `${plane}.json`);
}
