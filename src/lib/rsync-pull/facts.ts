// What a pull has brought, as one plain value.
import type { Entry } from '../actions/entry.ts';

/** One entry of the mirror. */
export type PulledEntry = {
  entry: Entry;
  /** It was begun or refused before, whatever became of it. */
  isKnown: boolean;
  /** The inbox has this very one. */
  isWaiting: boolean;
};

/**
 * What was left at the source, and why. The name is as rsync writes it. `mark` is this very thing's and no other's of its name;
 * undefined where it is no action's name, or where nobody could tell. `isKnown`: it was refused before.
 */
export type LeftEntry = { name: string; reason: string; mark?: string; isKnown?: boolean };

export type PullFacts = {
  entries: readonly PulledEntry[];
  left: readonly LeftEntry[];
  /** Names of files that this pull has seen at the source: the mirror may have what was taken back there long ago. */
  seen: ReadonlySet<string>;
  /** All names at the source. Undefined where the list is not known to be whole: then nothing is gone. */
  listed: ReadonlySet<string> | undefined;
  /** How many are in the inbox and in the outbox, and how many were refused within a day. */
  waiting: { actions: number; results: number; refused: number };
};
