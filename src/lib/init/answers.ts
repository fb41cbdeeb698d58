// What the new configuration says, from flags, the environment and the machine's name. Pure but for the name.
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { parseStateBucket } from '../cluster/state-bucket.ts';
import type { Role } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { UsageError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';
import { findBucketFault, parseBucketUrl } from '../store/bucket-url.ts';
import type { ConfigAnswers } from './render.ts';

export type InitRequest = {
  nodeId?: string;
  role?: string;
  store?: string;
  clusterId?: string;
  region?: string;
  /** What the environment says, which a flag wins over and a bucket's name does not. */
  regionAround?: string;
  endpoint?: string;
};

type Surroundings = Pick<BaseContext, 'paths' | 'overrides'>;

/** Throws UsageError for values no configuration may have. */
export function answer({ paths, overrides }: Surroundings, request: InitRequest): ConfigAnswers {
  const isMoved = paths.stateDir !== '/var/lib/reeve';
  return {
    nodeId: requireId('--node', request.nodeId ?? nodeIdOfHost(hostname())),
    roles: parseRoles(request.role ?? 'app'),
    clusterId: requireId('--cluster', request.clusterId ?? 'default'),
    ...answerStore({ paths, overrides }, request),
    logs: `file://${isMoved ? join(paths.stateDir, 'logs') : '/var/log/reeve'}`,
    backups: `file://${isMoved ? join(paths.stateDir, 'backups') : '/var/backups/reeve'}`,
  };
}

/** Whoever has the store on AWS has secrets and notifications there, too. */
function answerStore(
  { paths, overrides }: Surroundings,
  request: InitRequest,
): Pick<ConfigAnswers, 'store' | 'region' | 'endpoint' | 'secrets' | 'notify'> {
  const store = request.store ?? `file://${join(paths.stateDir, 'store')}`;
  const secrets = `file://${join(dirname(paths.configFile), 'secrets')}`;
  if (!store.startsWith('s3://')) {
    if (request.endpoint !== undefined) {
      throw new UsageError('cannot use --endpoint without --store s3://BUCKET: it is where the bucket is');
    }
    return { store, region: request.region ?? 'local', secrets, notify: 'none' };
  }
  const region = request.region ?? request.regionAround ?? regionOfBucket(store) ?? 'us-east-1';
  const endpoint = request.endpoint ?? overrides.AWS_ENDPOINT_URL;
  if (endpoint !== undefined) return { store, region, endpoint, secrets, notify: 'none' };
  return { store, region, secrets: 'ssm', notify: 'sns' };
}

function regionOfBucket(url: string): string | undefined {
  if (findBucketFault(url) !== undefined) return undefined;
  return parseStateBucket(parseBucketUrl(url).bucket)?.region;
}

/** Before it is rendered: the node's id stands in comments, too, where nothing would check it. */
function requireId(flag: string, id: string): string {
  if (nodeIdPattern.test(id)) return id;
  throw new UsageError(
    `cannot use ${flag} ${JSON.stringify(id)}: an id has up to 64 letters, digits, "_" and "-", and does not begin with "-"`,
  );
}

function parseRoles(text: string): Role[] {
  const names = text.split(',').map((name) => name.trim());
  const roles = (['app', 'edge'] as const).filter((role) => names.includes(role));
  if (roles.length === names.length) return roles;
  throw new UsageError(`cannot use --role ${JSON.stringify(text)}: it is app, edge or app,edge`);
}

/** The first label of the host's name, as far as an id may have its characters. */
export function nodeIdOfHost(name: string): string {
  const label = name.split('.')[0] ?? '';
  const id = label
    .replaceAll(/[^A-Za-z0-9_-]/g, '-')
    .replace(/^-+/, '')
    .slice(0, 64);
  return nodeIdPattern.test(id) ? id : 'node';
}
