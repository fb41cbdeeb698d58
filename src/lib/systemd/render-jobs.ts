// What the section `jobs` says to the units around it: where the API is called, and what its services reach. Pure.
import { isIP } from 'node:net';
import { dirname } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import { parseSocketAddress } from '../config/listen.ts';
import { InternalError } from '../errors.ts';
import { bootstrapTokenFile, defaultTokenFile } from '../ploy/names.ts';
import type { Opening } from './openings.ts';
import type { UnitsConfig } from './render.ts';
import type { Rendered } from './render-edge.ts';
import { jobsSocket, type ServiceUnit } from './units.ts';

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

/** As Go listens: without a host on all addresses, of either kind. */
export function renderApiSocket({ http }: JobsConfig): Rendered {
  const parsed = parseSocketAddress(http.listen);
  if (parsed === undefined)
    throw new InternalError(`jobs.http.listen ${JSON.stringify(http.listen)} was let in`);
  const { host: address, port } = parsed;
  const place = isIP(address) === 6 ? `[${address}]` : address;
  const stream = address === '' ? `${port}` : `${place}:${port}`;
  if (stream === '8444') return { unit: jobsSocket, lines: [] };
  return {
    unit: jobsSocket,
    lines: [
      '[Socket]',
      "# Empty first: else the unit's own address would stay in force beside this one.",
      'ListenStream=',
      `ListenStream=${stream}`,
    ],
  };
}
