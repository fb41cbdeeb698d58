// What all checks are given, and what several of them ask: each question is asked once.
import type { Config } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import type { UnitState } from './judge-units.ts';

export type World = {
  base: BaseContext;
  now: Date;
  /** As much of the configuration as is right; undefined where there is none. */
  config: Config | undefined;
  /** Ends what a check still waits for. */
  signal: AbortSignal;
  /** Undefined where systemd does not run. */
  units(): Promise<readonly UnitState[] | undefined>;
};
