// What the planner is told of the machine's units.

export type UnitFacts = {
  /** Text of our drop-ins, by unit; units of others are among them. */
  dropIns: ReadonlyMap<string, string>;
  /** Those of the switches that are on. */
  enabled: ReadonlySet<string>;
};
