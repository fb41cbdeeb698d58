// What lies at the source and is no action, as it was told last: people are told of it once, and see it as long as it lies there.
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';

/** As rsync writes its name. */
export type Stray = { name: string; reason: string };

/** `entries` are the first of them. */
export type Strays = { count: number; entries: readonly Stray[] };

type StraysContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

const mostEntries = 100;
const mostNameCharacters = 300;

export function summarizeStrays(strays: readonly Stray[]): Strays {
  const entries = strays.slice(0, mostEntries).map(({ name, reason }) => ({
    name: name.slice(0, mostNameCharacters),
    reason,
  }));
  return { count: strays.length, entries };
}

/** Those that nobody has been told of. Past the ones that are kept, it is their number that tells. */
export function findNews(strays: Strays, told: Strays): Stray[] {
  const known = new Set(told.entries.map(({ name, reason }) => `${name}\0${reason}`));
  return strays.entries.filter(({ name, reason }) => !known.has(`${name}\0${reason}`));
}

/** `repair`: whoever holds the lock may. */
export async function readStrays(
  { paths, clock, log }: StraysContext,
  { repair = false }: { repair?: boolean } = {},
): Promise<Strays> {
  const read = await readDocument(straysPath(paths), straysDocument, { now: clock.now(), log, repair });
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : { count: 0, entries: [] };
}

/** Writes only where something has changed. */
export async function writeStrays({ paths }: StraysContext, strays: Strays, told: Strays): Promise<void> {
  if (JSON.stringify(strays) === JSON.stringify(told)) return;
  await writeDocument(straysPath(paths), straysDocument, strays);
}

function straysPath({ stateDir }: BaseContext['paths']): string {
  return join(stateDir, 'actions', 'strays.json');
}

const straysDocument = defineDocument<Strays>({
  version: 1,
  parse: ({ count, entries }) => {
    if (!Number.isSafeInteger(count) || !Array.isArray(entries)) throw new TypeError('it has no entries');
    return { count: count as number, entries: entries.map(parseStray) };
  },
});

function parseStray(raw: unknown): Stray {
  if (!isRecord(raw)) throw new TypeError('an entry is no object');
  return { name: requireText(raw, 'name'), reason: requireText(raw, 'reason') };
}
