// What is to be done about the inbox, each with its reason.
import type { Marker } from '../actions/markers.ts';
import type { EntryName } from '../actions/open.ts';

export type Step =
  /**
   * Begun, and nobody at work: how it ended is not known, and it is not begun again. `marker`: undefined where it is damaged. `name`, as
   * of the next two: in the inbox, which it leaves.
   */
  | { kind: 'settle'; key: string; marker?: Marker; name?: EntryName; reason: string }
  /** Its marker is not ours to write. */
  | ({ kind: 'leave'; name?: EntryName; reason: string } & LeftAction)
  /** Its end is known and not told. */
  | { kind: 'report'; key: string; marker: EndedMarker; name?: EntryName; reason: string }
  /** Nothing is left to be told. */
  | { kind: 'close'; key: string; reason: string }
  /** Begun or refused before: the file goes. */
  | { kind: 'forget'; key: string; actionId: string; name: EntryName; reason: string }
  | ({ kind: 'refuse'; name: EntryName; reason: string } & RefusedAction)
  /** Nobody waits for these. */
  | { kind: 'set-aside'; names: readonly EntryName[]; reason: string }
  | { kind: 'deploy'; key: string; actionId: string; service: string; name: EntryName; reason: string };

/** Not now: it is looked at again. */
export type WaitStep = { kind: 'wait'; key: string; actionId: string; reason: string };

export type PlannedStep = Step | WaitStep;

export type RefusedAction = { key: string; actionId: string; actionType?: string; service?: string };

/** A later reeve tells of its own end. */
export type LeftAction = { key: string; actionId: string; marker: 'newer' | 'unreadable' };

export type EndedMarker = Marker & { state: Extract<Marker['state'], { kind: 'ended' }> };
