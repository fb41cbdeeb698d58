// images.json: image references that reeve has run on this machine, with when last. Written by reconcile, read by prune.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import type { BaseContext } from '../context.ts';
import { defineDocument, readDocument } from './document.ts';
import { requireRecordOf } from './shape.ts';

export type ImagesDocument = { references: Readonly<Record<string, string>> };

export const imagesDocument = defineDocument<ImagesDocument>({
  version: 1,
  parse: (raw) => ({
    references: requireRecordOf(raw, 'references', (value): value is string => typeof value === 'string'),
  }),
});

export function imagesPath(paths: Pick<Paths, 'stateDir'>): string {
  return join(paths.stateDir, 'images.json');
}

export async function readImagesUsed(ctx: Pick<BaseContext, 'paths' | 'clock' | 'log'>): Promise<string[]> {
  const options = { now: ctx.clock.now(), log: ctx.log, repair: false };
  const read = await readDocument(imagesPath(ctx.paths), imagesDocument, options);
  return read.kind === 'ok' || read.kind === 'recovered' ? Object.keys(read.value.references) : [];
}
