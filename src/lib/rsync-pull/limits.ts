// How much a source may bring.

/** A node has some dozen services. More than so many entries are no actions, and none of them is taken. */
export const mostEntries = 2_000;
