// Holds: what timers leave alone for a while because a person said so. Reading is cheap, for every tick does it.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { type Log, silentLog } from '../report/log.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { isRecord } from '../state/shape.ts';

export type Hold = {
  /** `node` for all of this machine, else `PROJECT/SERVICE`. */
  target: string;
  until: string;
  reason: string;
  by: string;
  since: string;
};

/** The target that means all services of this machine. */
export const nodeTarget = 'node';

type HoldsDocument = { holds: readonly Hold[] };

const holdsDocument = defineDocument<HoldsDocument>({
  version: 1,
  parse: (raw) => {
    const { holds } = raw;
    if (!Array.isArray(holds) || !holds.every(isHold)) throw new TypeError('holds is no list of holds');
    return { holds };
  },
});

/** Holds that have not ended. A damaged file is told about and left where it is: only `hold` itself repairs it. */
export async function readHolds(
  paths: Pick<Paths, 'stateDir'>,
  now: Date,
  log: Log = silentLog,
): Promise<Hold[]> {
  return await read(paths, { now, log, repair: false });
}

/** Replaces the list by what `change` makes of the holds that have not ended. */
export async function updateHolds(
  paths: Pick<Paths, 'stateDir'>,
  about: { now: Date; log: Log },
  change: (holds: readonly Hold[]) => readonly Hold[],
): Promise<void> {
  const holds = change(await read(paths, { ...about, repair: true }));
  await writeDocument(holdsPath(paths), holdsDocument, { holds });
}

/** The hold that a service is under: its own, or the machine's; the longer one where there are both. */
export function holdFor(holds: readonly Hold[], key: string, now: Date): Hold | undefined {
  return holds
    .filter((hold) => (hold.target === nodeTarget || hold.target === key) && isActive(hold, now))
    .toSorted((left, right) => Date.parse(right.until) - Date.parse(left.until))[0];
}

async function read(
  paths: Pick<Paths, 'stateDir'>,
  options: { now: Date; log: Log; repair: boolean },
): Promise<Hold[]> {
  const result = await readDocument(holdsPath(paths), holdsDocument, options);
  if (result.kind === 'missing') return [];
  if (result.kind === 'lost') return [holdEverything(options.now)];
  return result.value.holds.filter((hold) => isActive(hold, options.now));
}

/** What was held can no longer be told, so nothing is touched until a person says so. */
function holdEverything(now: Date): Hold {
  const until = new Date(now.getTime() + 60 * 60_000).toISOString();
  const reason =
    'holds.json was damaged, and what it held is unknown: `reeve hold --end --node` when that is clear';
  return { target: nodeTarget, until, reason, by: 'reeve', since: now.toISOString() };
}

function isActive(hold: Hold, now: Date): boolean {
  return Date.parse(hold.until) > now.getTime();
}

function isHold(value: unknown): value is Hold {
  if (!isRecord(value)) return false;
  return (
    ['target', 'until', 'reason', 'by', 'since'].every((name) => typeof value[name] === 'string') &&
    !Number.isNaN(Date.parse(String(value['until'])))
  );
}

function holdsPath(paths: Pick<Paths, 'stateDir'>): string {
  return join(paths.stateDir, 'holds.json');
}
