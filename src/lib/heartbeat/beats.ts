// `backoff/<control plane>.json`: when it was told last, and when it is told next. Owned by the heartbeat, under its lock.
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { requireText } from '../state/shape.ts';
import type { Beats } from './plan-beat.ts';

type BeatsContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

const beatsDocument = defineDocument<Beats>({
  version: 1,
  parse: (raw) => {
    const { failures } = raw;
    if (!Number.isSafeInteger(failures)) throw new TypeError('failures is no number');
    return {
      lastTriedAt: requireText(raw, 'lastTriedAt'),
      nextAt: requireText(raw, 'nextAt'),
      failures: failures as number,
    };
  },
});

export async function readBeats(ctx: BeatsContext, plane: string): Promise<Beats | undefined> {
  const options = { now: ctx.clock.now(), log: ctx.log };
  const read = await readDocument(beatsPath(ctx, plane), beatsDocument, options);
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
}

export async function writeBeats(ctx: BeatsContext, plane: string, beats: Beats): Promise<void> {
  await writeDocument(beatsPath(ctx, plane), beatsDocument, beats);
}

function beatsPath({ paths }: BeatsContext, plane: string): string {
  return join(paths.stateDir, 'backoff', `${plane}.json`);
}
