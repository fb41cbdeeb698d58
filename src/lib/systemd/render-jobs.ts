// What the section `jobs` says to the units around it: what its services reach. Pure.
import { dirname } from 'node:path';
import { bootstrapTokenFile, defaultTokenFile } from '../ploy/names.ts';
import type { Opening } from './openings.ts';
import type { UnitsConfig } from './render.ts';
import type { ServiceUnit } from './units.ts';

type Wanted = Omit<Opening, 'zone'>;

const identityWhy = 'jobs.http.tls';

/** Beside what every service reaches. */
export function findJobsOpenings(
  { jobs: part }: ServiceUnit,
  { jobs, environment = {} }: UnitsConfig,
): Wanted[] {
  if (part === undefined || jobs === undefined) return [];
  const { enabled, certPath, keyPath, caPath, bootstrapCaPath } = jobs.http.tls;
  // Without TLS there is nothing to exchange a token for.
  const write = part.identity === 'write' && enabled;
  const tokenPath = environment.PLOY_NODE_BEARER_TOKEN_PATH ?? defaultTokenFile;
  const bootstrapPath = environment.PLOY_BOOTSTRAP_TOKEN_PATH ?? bootstrapTokenFile;
  const issued = [certPath, keyPath, caPath, tokenPath, ...(write ? [bootstrapPath] : [])];
  const reads = part.identity === 'write' ? [bootstrapCaPath] : [];
  const workspaces = part.workspaces === undefined ? undefined : environment.PLOYD_CACHE_HOME;
  return [
    ...toOpenings(issued.map(parentOf), { why: identityWhy, write }),
    ...toOpenings(reads.map(parentOf), { why: identityWhy, write: false }),
    ...toOpenings([workspaces], { why: 'PLOYD_CACHE_HOME', write: part.workspaces === 'write' }),
  ];
}

/** What the bootstrap or a job makes where it is missing: outside the sandbox, before it closes. */
export function isMade({ why, write, zone }: Opening): boolean {
  return write && zone === undefined && (why === identityWhy || why === 'PLOYD_CACHE_HOME');
}

function parentOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : dirname(path);
}

function toOpenings(
  paths: readonly (string | undefined)[],
  about: { why: string; write: boolean },
): Wanted[] {
  return paths.flatMap((path) => (path?.startsWith('/') === true ? [{ ...about, path }] : []));
}
