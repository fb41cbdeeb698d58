// Reads what the tick before has left. All of it can be asked for again, so that what cannot be used, be it of a newer reeve,
// keeps no route from being served.
import type { Context } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { type DocumentDefinition, readDocument } from '../state/document.ts';
import {
  type EdgeDocument,
  type EdgeShardsDocument,
  edgeDocument,
  edgePath,
  edgeShardsDocument,
  edgeShardsPath,
  emptyEdge,
} from './documents.ts';

type Surroundings = Pick<Context, 'paths' | 'clock' | 'log'>;

export async function readMemory(ctx: Surroundings, options: { repair: boolean }): Promise<EdgeDocument> {
  return (await readUsable(ctx, edgePath(ctx.paths), edgeDocument, options)) ?? emptyEdge;
}

/** Shards as last read; undefined where they are lost. */
export async function readShards(ctx: Surroundings): Promise<EdgeShardsDocument['shards'] | undefined> {
  const path = edgeShardsPath(ctx.paths);
  return (await readUsable(ctx, path, edgeShardsDocument, { repair: false }))?.shards;
}

async function readUsable<T extends object>(
  { clock, log }: Surroundings,
  path: string,
  definition: DocumentDefinition<T>,
  { repair }: { repair: boolean },
): Promise<T | undefined> {
  try {
    const read = await readDocument(path, definition, { now: clock.now(), log, repair });
    return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    log.warning(`${describeError(error)}: it goes on without`);
    return undefined;
  }
}
