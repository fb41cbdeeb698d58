// What one activation of `claim` works with.
import type { JobsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Engine } from '../docker/types.ts';
import type { Runners } from './children.ts';

export type ClaimSession = {
  ctx: Context;
  jobs: JobsConfig;
  engine: Engine;
  controlPlane: ControlPlane;
  runners: Runners;
  /** From 0 up to, not including, 1. */
  random: () => number;
};
