// What the inbox, the markers and the checkout say, as one plain value.
import type { Entry } from '../actions/entry.ts';
import type { ReadMarker } from '../actions/markers.ts';
import type { Hold } from '../hold/holds.ts';

export type Facts = {
  /** This node's name. */
  node: string;
  entries: readonly EntryFact[];
  /** What may not have been reported. */
  open: readonly { key: string; marker: ReadMarker }[];
  /** The names in `hosts/<node>/services.yaml`, or why they are not known. */
  services: ReadonlySet<string> | { problem: string };
  /** How long an action may have waited when its deploy begins: the control side gives up some time. */
  roomMs: number;
  /** What a person leaves this node alone by. */
  hold?: Hold;
};

export type EntryFact =
  | { entry: Extract<Entry, { kind: 'foreign' }> }
  | { entry: Extract<Entry, { kind: 'refused' }>; marker: ReadMarker }
  | {
      entry: Extract<Entry, { kind: 'action' }>;
      marker: ReadMarker;
      hasComposeFile: boolean;
      waitedMs: number;
    };
