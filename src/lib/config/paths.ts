// Where reeve keeps its files. Together with environment.ts the only reader of process.env.
import { join, resolve } from 'node:path';

export type Paths = {
  configFile: string;
  /** Durable state: REEVE_STATE, default /var/lib/reeve. */
  stateDir: string;
  /** Locks, wakes and sockets, gone at boot: REEVE_RUN, default /run/reeve. */
  runDir: string;
  /** What can be made again: REEVE_CACHE, default /var/cache/reeve. */
  cacheDir: string;
  locksDir: string;
  wakeDir: string;
};

export function resolvePaths(flags: { config?: string }, env: NodeJS.ProcessEnv = process.env): Paths {
  const runDir = env['REEVE_RUN'] || '/run/reeve';
  return {
    // Units are rendered with it, and systemd's working directory is another.
    configFile: resolve(flags.config || env['REEVE_CONFIG'] || '/etc/reeve/reeve.yaml'),
    stateDir: env['REEVE_STATE'] || '/var/lib/reeve',
    runDir,
    cacheDir: env['REEVE_CACHE'] || '/var/cache/reeve',
    locksDir: join(runDir, 'locks'),
    wakeDir: join(runDir, 'wake'),
  };
}
