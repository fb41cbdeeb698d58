// Words of ploy that stand in containers, headers and on disks. Nowhere else are they written.

/** Labels of a job's container; one that lacks either, or has it blank, is none. */
export const runLabel = 'com.ploy.run_id';
export const jobLabel = 'com.ploy.job_id';

export const nodeHeader = 'PLOY_NODE_UUID';

/** A container that ended so long ago or less, to the millisecond, is completed after a restart; an older one is not. */
export const replayWindowMs = 120_000;

export const defaultTokenFile = '/etc/ploy/bearer-token';
export const bootstrapTokenFile = '/run/ploy/bootstrap-token';

/** Paths in a job's container. */
export const containerDirs = {
  workspace: '/workspace',
  in: '/in',
  out: '/out',
  share: '/share',
  tmp: '/tmp',
  certs: '/etc/ploy/certs',
} as const;
