// From what a pull has brought, what is done with it: what has no marker goes to the inbox, what is no action is refused, what has
// gone at the source goes from the mirror. Whether an action is one for this node is asked by whoever performs it. Pure.
import { contentKey } from '../deploy-runner/key.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import type { LeftEntry, PulledEntry, PullFacts } from './facts.ts';
import type { PullStep } from './steps.ts';

/** `strays`: what is no action and nobody waits for; people are told. */
export type PullPlan = { steps: readonly PullStep[]; strays: readonly LeftEntry[] };

export function planPull({ entries, left, listed }: PullFacts): PullPlan {
  const steps = [
    ...entries.flatMap((entry) => planEntry(entry)),
    ...entries.flatMap((entry) => planDrop(entry, listed)),
    ...left.flatMap((entry) => refuseLeft(entry)),
  ];
  return { steps, strays: listStrays(entries, left) };
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
        reason: `${entry.key} was never begun here`,
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
function refuseLeft({ name, reason, mark }: LeftEntry): PullStep[] {
  const actionId = parseActionFileName(name);
  if (actionId === undefined || mark === undefined) return [];
  return [{ kind: 'refuse', name, actionId, key: contentKey(actionId, `left: ${reason}: ${mark}`), reason }];
}

/** What a killed rsync has left: the source's own of such names are not even looked at. */
function isUnfinished(name: string): boolean {
  return name.startsWith('.');
}
