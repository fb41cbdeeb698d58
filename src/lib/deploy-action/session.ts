// What a run of deploy-action works with.
import type { Quarantine } from '../actions/leave.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';

export type Session = {
  ctx: Context;
  actions: ActionsConfig;
  quarantine: Quarantine;
  /** Says in the run's record what is being done, and how long that may take. */
  tell(doing: string, forMs: number): Promise<void>;
};

/** Within so long after its start a run begins deploys; the next activation goes on. The unit's own limit is higher. */
export const windowMs = 10 * 60_000;
