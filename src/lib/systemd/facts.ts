// What the planner is told of the machine's units.

export type UnitFacts = {
  /** Text of our drop-ins, by unit. */
  dropIns: ReadonlyMap<string, string>;
  /** Targets of roles that start with reeve.target. */
  enabled: ReadonlySet<string>;
};
