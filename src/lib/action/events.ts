// Results among the events that nodes have pushed, in either form of their paths. A node writes what it likes into its own directory:
// what is no result of an action that is asked for is passed over.
import { readdir } from 'node:fs/promises';
import { type EntryName, listEntries, mostNames, openEntry } from '../actions/open.ts';
import type { Context } from '../context.ts';
import { maxEventBytes, parseEventFileName, parseResultEvent } from '../deploy-runner/event.ts';
import { datedEventsNames, eventDatePattern, eventsRoot, nodeEventsNames } from '../deploy-runner/layout.ts';
import { describeError, ReeveError, StepError, systemErrorCode } from '../errors.ts';
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
/** Of one directory, and of each kind of names. Only the latest matter, and a node may have put there any number. */
const mostOpened = 500;

export type FoundResults = {
  /** By action id, oldest first. */
  byId: ReadonlyMap<string, readonly Reported[]>;
  /** Why there may be more. */
  problems: readonly string[];
};

export async function readResults(
  ctx: Pick<Context, 'log'>,
  root: string,
  wanted: Wanted,
): Promise<FoundResults> {
  const byId = new Map<string, Reported[]>();
  const problems: string[] = [];
  const events = eventsRoot(root);
  const tell = (error: unknown): void => {
    if (!(error instanceof ReeveError)) throw error;
    if (systemErrorCode(error) !== 'ENOENT') problems.push(describeError(error));
  };
  const directories = await listDirectories(events, wanted).catch(tell);
  for (const names of directories ?? []) {
    const read = (directory: HeldDirectory): Promise<Reported[]> => readDirectory(ctx, directory, wanted);
    for (const reported of (await withDirectory(events, names, read).catch(tell)) ?? []) {
      const { actionId } = reported.result;
      byId.set(actionId, [...(byId.get(actionId) ?? []), reported]);
    }
  }
  return { byId, problems };
}

/** As names below `events`. */
async function listDirectories(events: string, { node, sinceMs }: Wanted): Promise<(readonly string[])[]> {
  const first = new Date(Math.max(0, sinceMs - spareDays * dayMs)).toISOString().slice(0, 10);
  const read = (directory: HeldDirectory): Promise<string[]> =>
    readdir(directory.at()).catch((error: unknown) => {
      throw fileError('read', events, error);
    });
  const names = await withDirectory(events, [], read);
  const dates = names.filter((name) => eventDatePattern.test(name) && name >= first).sort();
  return [...dates.map((date) => datedEventsNames(date, node)), nodeEventsNames(node)];
}

async function readDirectory(
  { log }: Pick<Context, 'log'>,
  directory: HeldDirectory,
  wanted: Wanted,
): Promise<Reported[]> {
  const { names, isCut } = await listEntries(directory.at(), mostNames, directory.path);
  if (isCut) {
    throw new StepError(
      `cannot look for results in ${directory.path}: there are more than ${mostNames} names`,
    );
  }
  const found: Reported[] = [];
  const passedOver: string[] = [];
  for (const name of pickNames(names, wanted)) {
    const reported = await readResult(name);
    if (typeof reported === 'string') passedOver.push(`${name.text}: ${reported}`);
    else if (reported !== undefined && isWanted(reported, wanted)) found.push(reported);
  }
  tellOnce(log, directory.path, passedOver);
  return found;
}

/**
 * In their order. The seed's own runner may name its files otherwise: those are known by what is in them. However many there are, they
 * keep none out that has a result's name.
 */
function pickNames(names: readonly EntryName[], { ids }: Wanted): EntryName[] {
  const like = names.filter(({ text }) => /^evt-.*action_result.*\.json$/s.test(text));
  const named = like.filter(({ text }) => ids.has(parseEventFileName(text)?.actionId ?? ''));
  const others = like.filter(({ text }) => parseEventFileName(text) === undefined);
  const picked = new Set([...named.slice(-mostOpened), ...others.slice(-mostOpened)]);
  return like.filter((name) => picked.has(name));
}

const told = new Set<string>();

/** One line for a directory, in each process: it may look every second, and a node decides how many there are. */
function tellOnce(log: Context['log'], path: string, passedOver: readonly string[]): void {
  const [first] = passedOver;
  if (first === undefined || told.has(path)) return;
  told.add(path);
  log.warning(`${passedOver.length} passed over that are no results, the first of them ${first}`, { path });
}

function isWanted({ result }: Reported, { node, ids }: Wanted): boolean {
  return result.node === node && ids.has(result.actionId);
}

/** Undefined where it has gone, the reason in words where it is none. */
async function readResult({ text: name, path }: EntryName): Promise<Reported | string | undefined> {
  try {
    const opened = await openEntry(path, maxEventBytes);
    if (opened.kind === 'gone') return undefined;
    if (opened.kind === 'refused') return opened.reason;
    const { bytes, about } = opened;
    return { name, result: parseResultEvent(bytes), arrivedAtMs: about.ctimeMs };
  } catch (error) {
    // Not even a file that may not be read keeps those beside it from being looked at.
    if (!(error instanceof ReeveError)) throw error;
    return describeError(error);
  }
}
