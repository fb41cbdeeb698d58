// How much a source may bring.

/** A node has some dozen services. More than so many entries are no actions, and none of them is taken. */
export const mostEntries = 2_000;

/** Nothing more is handed over, or refused, where so many wait in the inbox or, with their results, in the outbox. */
export const mostWaiting = 500;

/** Each has a marker and a result: more wait for the next pull. */
export const mostRefusals = 200;

/** Each has a line in the history, which keeps a month: nothing more is taken until the next day. */
export const mostRefusalsDaily = 2_000;
