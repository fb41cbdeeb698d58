// Everything that is done with what a pull has brought, as data.

export type PullStep =
  /** Into the inbox, as it is. */
  | { kind: 'hand-over'; name: string; key: string; bytes: Uint8Array; reason: string }
  /** The control side is told that it has failed, once. */
  | { kind: 'refuse'; name: string; actionId: string; key: string; reason: string }
  /** Out of the mirror. */
  | { kind: 'drop'; path: Uint8Array; reason: string };
