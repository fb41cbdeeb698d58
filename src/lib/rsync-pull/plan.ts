// From what a pull has brought, what is done with it: what has no marker goes to the inbox, what is no action is refused, what has
// gone at the source goes from the mirror. Whether an action is one for this node is asked by whoever performs it. Pure.
import { describeApproval } from '../deploy-runner/key.ts';
import type { LeftEntry, PulledEntry, PullFacts } from './facts.ts';
import { identifyLeft } from './keys.ts';
import { mostRefusals, mostRefusalsDaily, mostWaiting } from './limits.ts';
import type { PullStep } from './steps.ts';

export type PullPlan = {
  steps: readonly PullStep[];
  /** What is no action and nobody waits for; people are told. */
  strays: readonly LeftEntry[];
  /** How many there is no room for: they are left for the next pull. */
  postponed: number;
  /** Of everything that somebody may wait for at the source. */
  keys: ReadonlySet<string>;
};

export function planPull({ entries, left, seen, listed, waiting }: PullFacts): PullPlan {
  const present = entries.filter(({ entry }) => seen.has(entry.name.text));
  const news = [
    ...present.flatMap((entry) => planEntry(entry)),
    ...left.flatMap((entry) => refuseLeft(entry)),
  ];
  // Results leave before more is taken that makes some. What is handed over may be refused as well.
  const isFull = waiting.results >= mostWaiting || waiting.refused >= mostRefusalsDaily;
  const handOvers = takeFirst(news, 'hand-over', isFull ? 0 : mostWaiting - waiting.actions);
  const refusals = takeFirst(news, 'refuse', isFull ? 0 : mostRefusals);
  const drops = entries.flatMap((entry) => planDrop(entry, listed));
  return {
    steps: [...handOvers, ...refusals, ...drops],
    strays: listStrays(entries, left),
    postponed: news.length - handOvers.length - refusals.length,
    keys: new Set([
      ...entries.flatMap(({ entry }) => (entry.kind === 'foreign' ? [] : [entry.key])),
      ...left.flatMap((entry) => identifyLeft(entry)?.key ?? []),
    ]),
  };
}

function takeFirst(steps: readonly PullStep[], kind: PullStep['kind'], most: number): PullStep[] {
  return steps.filter((step) => step.kind === kind).slice(0, Math.max(0, most));
}

/** A directory is in both lists. */
function listStrays(entries: readonly PulledEntry[], left: readonly LeftEntry[]): LeftEntry[] {
  const foreign = entries.flatMap(({ entry }) => {
    if (entry.kind !== 'foreign' || isUnfinished(entry.name.text)) return [];
    return [{ name: entry.name.text, reason: entry.reason }];
  });
  const leftStrays = left.map(({ name, reason }) => ({ name, reason }));
  const byName = new Map([...foreign, ...leftStrays].map((stray) => [stray.name, stray]));
  return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function planEntry({ entry, isKnown, isWaiting }: PulledEntry): PullStep[] {
  if (isKnown || isWaiting || entry.kind === 'foreign') return [];
  const name = entry.name.text;
  if (entry.kind === 'action') {
    return [
      {
        kind: 'hand-over',
        name,
        key: entry.key,
        bytes: entry.bytes,
        reason: `${describeApproval(entry.action)}, and never begun here`,
      },
    ];
  }
  const { actionId, key, reason } = entry;
  return [{ kind: 'refuse', name, actionId, key, reason }];
}

/** What is no plain file under an action's name comes again with each pull. */
function planDrop({ entry }: PulledEntry, listed: PullFacts['listed']): PullStep[] {
  const { path, text } = entry.name;
  if (entry.kind === 'foreign') return [{ kind: 'drop', path, reason: entry.reason }];
  if (listed === undefined || listed.has(text)) return [];
  return [{ kind: 'drop', path, reason: 'it is no longer at the source' }];
}

/** It is not here and may never come. Whoever waits for it is told, and told again of another one of the same name. */
function refuseLeft(entry: LeftEntry): PullStep[] {
  const about = identifyLeft(entry);
  if (about === undefined || entry.isKnown === true) return [];
  return [{ kind: 'refuse', name: entry.name, ...about, reason: entry.reason }];
}

/** What a killed rsync has left: the source's own of such names are not even looked at. */
function isUnfinished(name: string): boolean {
  return name.startsWith('.');
}
