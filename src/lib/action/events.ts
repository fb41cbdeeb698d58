// Results among the events that nodes have pushed, in either form of their paths. A node writes what it likes into its own directory:
// what is no result of an action that is asked for is passed over.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type EntryName, listEntries, openEntry } from '../actions/open.ts';
import type { Context } from '../context.ts';
import { maxEventBytes, parseEventFileName, parseResultEvent } from '../deploy-runner/event.ts';
import { datedEventsNames, eventDatePattern, eventsRoot, nodeEventsNames } from '../deploy-runner/layout.ts';
import { describeError, InputError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { type HeldDirectory, withDirectory } from '../state/held-directory.ts';
import type { Reported } from './facts.ts';

export type Wanted = {
  node: string;
  ids: ReadonlySet<string>;
  /** The first of them went out then. */
  sinceMs: number;
};

const dayMs = 24 * 60 * 60_000;
/** Dates are by the node's clock. */
const spareDays = 2;
/** Events are kept for long. */
const mostNames = 200_000;
/** Of one directory. Only the latest matter, and a node may have put there any number. */
const mostOpened = 500;

/** By action id, oldest first. What cannot be looked into is told, and has nothing. */
export async function readResults(
  ctx: Pick<Context, 'log'>,
  root: string,
  wanted: Wanted,
): Promise<Map<string, Reported[]>> {
  const results = new Map<string, Reported[]>();
  const events = eventsRoot(root);
  for (const names of await listDirectories(events, wanted)) {
    const path = [events, ...names].join('/');
    try {
      const read = (directory: HeldDirectory): Promise<Reported[]> => readDirectory(ctx, directory, wanted);
      for (const reported of await withDirectory(events, names, read)) {
        const { actionId } = reported.result;
        results.set(actionId, [...(results.get(actionId) ?? []), reported]);
      }
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') continue;
      ctx.log.warning(`cannot look for results: ${describeError(error)}`, { path });
    }
  }
  return results;
}

/** As names below `events`. */
async function listDirectories(events: string, { node, sinceMs }: Wanted): Promise<(readonly string[])[]> {
  const first = new Date(Math.max(0, sinceMs - spareDays * dayMs)).toISOString().slice(0, 10);
  const read = (directory: HeldDirectory): Promise<string[]> => readdir(directory.at());
  const names = await withDirectory(events, [], read).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', events, error);
  });
  const dates = names.filter((name) => eventDatePattern.test(name) && name >= first).sort();
  return [...dates.map((date) => datedEventsNames(date, node)), nodeEventsNames(node)];
}

async function readDirectory(
  { log }: Pick<Context, 'log'>,
  directory: HeldDirectory,
  wanted: Wanted,
): Promise<Reported[]> {
  const { names } = await listEntries(directory.at(), mostNames, directory.path);
  const candidates = names.filter(({ text }) => mayBeWanted(text, wanted)).slice(-mostOpened);
  const found: Reported[] = [];
  for (const name of candidates) {
    const reported = await readResult(name);
    if (typeof reported === 'string') {
      log.warning(`a result is passed over: ${reported}`, { path: join(directory.path, name.text) });
    } else if (reported !== undefined && isWanted(reported, wanted)) {
      found.push(reported);
    }
  }
  return found;
}

/** The seed's own runner may name its files otherwise: those are known by what is in them. */
function mayBeWanted(name: string, { ids }: Wanted): boolean {
  if (!/^evt-.*action_result.*\.json$/s.test(name)) return false;
  const parsed = parseEventFileName(name);
  return parsed === undefined || ids.has(parsed.actionId);
}

function isWanted({ result }: Reported, { node, ids }: Wanted): boolean {
  return result.node === node && ids.has(result.actionId);
}

/** Undefined where it has gone, the reason in words where it is none. */
async function readResult({ text: name, path }: EntryName): Promise<Reported | string | undefined> {
  const opened = await openEntry(path, maxEventBytes);
  if (opened.kind === 'gone') return undefined;
  if (opened.kind === 'refused') return opened.reason;
  try {
    const { bytes, about } = opened;
    return { name, result: parseResultEvent(bytes), arrivedAtMs: about.ctimeMs };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return describeError(error);
  }
}
