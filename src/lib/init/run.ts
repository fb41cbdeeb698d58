// `reeve init`: makes this machine a node. First its entries in the store, which may be there already, then its
// configuration, which may not: so a run that failed halfway is simply repeated.
import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, open, rm } from 'node:fs/promises';
import { availableParallelism, hostname, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clusterKey } from '../cluster/keys.ts';
import { renderDocument } from '../cluster/wire.ts';
import { compileConfig } from '../config/compile.ts';
import type { ClusterConfig, Role } from '../config/config.ts';
import { requireNode } from '../config/rules.ts';
import { describeSource } from '../config/sources.ts';
import type { BaseContext } from '../context.ts';
import {
  ConfigError,
  describeError,
  InternalError,
  ReeveError,
  systemErrorCode,
  UsageError,
} from '../errors.ts';
import { findAdvertiseIp } from '../host/addresses.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Outcome } from '../outcome.ts';
import { openStore } from '../store/open.ts';
import { PreconditionError, type Store } from '../store/store.ts';
import { startUnits } from '../systemd/run.ts';
import { planRegistry } from './registry.ts';
import { type ConfigAnswers, renderConfig } from './render.ts';

export type InitRequest = {
  nodeId?: string;
  role?: string;
  store?: string;
  clusterId?: string;
  region?: string;
};

/** Throws ConfigError where there is a configuration already, UsageError for values no configuration may have. */
export async function initNode(base: BaseContext, request: InitRequest): Promise<Outcome> {
  const { paths } = base;
  await requireAbsent(paths.configFile);
  const text = renderConfig(answer(base, request));
  const cluster = compileText(base, text);
  const entries = await register(base, cluster);
  await writeNew(paths.configFile, text);
  const address = ({ key }: Entry): string => `${cluster.store.replace(/\/+$/, '')}/${key}`;
  const written = [paths.configFile, ...entries.filter(({ isNew }) => isNew).map(address)];
  const kept = entries.filter(({ isNew }) => !isNew).map(address);
  const units = await switchOn(base, cluster);
  return {
    outcome: units.failed ? 'partial' : 'done',
    text: [
      ...written.map((name) => `wrote ${name}`),
      ...kept.map((name) => `kept ${name}, which was there`),
      ...units.lines,
      describeNext(cluster),
    ],
    data: { nodeId: cluster.nodeId, roles: cluster.roles, store: cluster.store, written, kept },
  };
}

function describeNext({ roles, nodeId, edgeId = nodeId }: ClusterConfig & { nodeId: string }): string {
  const deploy = 'next: `reeve doctor` checks this machine, `reeve deploy FILE` gives it services';
  if (!roles.includes('edge')) return deploy;
  const name = `ingress.edge: ${edgeId}`;
  if (roles.includes('app')) return `${deploy}, which name its edge with \`${name}\``;
  return `next: \`systemctl restart caddy\`, \`reeve doctor\`; services name this edge with \`${name}\``;
}

/** The configuration stands by now, so a failure here is told together with what makes it good. */
async function switchOn(
  base: BaseContext,
  cluster: ClusterConfig,
): Promise<{ lines: readonly string[]; failed: boolean }> {
  try {
    return { lines: (await startUnits(base, { cluster })) ?? [], failed: false };
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    base.log.error(error.message);
    const advice =
      'the units are not as this configuration wants them: `reeve units render --write` tries again';
    return { lines: [advice], failed: true };
  }
}

function answer(base: BaseContext, request: InitRequest): ConfigAnswers {
  const { paths } = base;
  const isMoved = paths.stateDir !== '/var/lib/reeve';
  return {
    nodeId: requireId('--node', request.nodeId ?? nodeIdOfHost(hostname())),
    roles: parseRoles(request.role ?? 'app'),
    clusterId: requireId('--cluster', request.clusterId ?? 'default'),
    ...answerStore(base, request),
    logs: `file://${isMoved ? join(paths.stateDir, 'logs') : '/var/log/reeve'}`,
    backups: `file://${isMoved ? join(paths.stateDir, 'backups') : '/var/backups/reeve'}`,
  };
}

/** Whoever has the store on AWS has secrets and notifications there, too. */
function answerStore(
  { paths, overrides }: BaseContext,
  request: InitRequest,
): Pick<ConfigAnswers, 'store' | 'region' | 'endpoint' | 'secrets' | 'notify'> {
  const store = request.store ?? `file://${join(paths.stateDir, 'store')}`;
  const secrets = `file://${join(dirname(paths.configFile), 'secrets')}`;
  if (!store.startsWith('s3://')) {
    return { store, region: request.region ?? 'local', secrets, notify: 'none' };
  }
  const region = request.region ?? 'us-east-1';
  const endpoint = overrides.AWS_ENDPOINT_URL;
  if (endpoint !== undefined) return { store, region, endpoint, secrets, notify: 'none' };
  return { store, region, secrets: 'ssm', notify: 'sns' };
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

/** What was rendered goes through the same gate as what people write; only flags can be wrong in it. */
function compileText(base: BaseContext, text: string): ClusterConfig & { nodeId: string } {
  const source = describeSource(base.paths.configFile, Buffer.from(text), 0o600);
  const { config, problems } = compileConfig(source, base);
  const [problem] = problems;
  if (problem !== undefined) throw new UsageError(`cannot write a configuration: ${problem.message}`);
  for (const warning of config.warnings) base.log.warning(warning);
  return requireNode(config);
}

type Entry = { key: string; isNew: boolean };

async function register(base: BaseContext, cluster: ClusterConfig & { nodeId: string }): Promise<Entry[]> {
  await makeStoreDirectory(cluster.store);
  const store = await openStore(cluster, { signal: base.signal });
  const advertiseIp = await findAdvertiseIp(cluster, { log: base.log });
  const documents = planRegistry(
    {
      ...cluster,
      agentId: cluster.agentId ?? cluster.nodeId,
      advertiseIp,
      cpus: availableParallelism(),
      memoryBytes: totalmem(),
    },
    base.clock.now(),
  );
  const entries: Entry[] = [];
  for (const { key, document } of documents) {
    try {
      entries.push({ key, isNew: await putAbsent(store, key, renderDocument(document)) });
    } catch (error) {
      if (!isOthers(error, key, cluster.clusterId)) throw error;
      base.log.info(`left ${key} to whoever deploys: this node may not write it`);
    }
  }
  return entries;
}

/** A node's role need not reach beyond its own entry, and the cluster's is there for deploys. */
function isOthers(error: unknown, key: string, clusterId: string): boolean {
  return error instanceof ReeveError && error.code === 'denied' && key === clusterKey(clusterId);
}

/** A store takes a missing directory for a missing mount, and fails; here is the one place that makes it. */
async function makeStoreDirectory(url: string): Promise<void> {
  if (!url.startsWith('file:')) return;
  const path = fileURLToPath(url);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ConfigError(`cannot make directory ${path}: ${describeError(error)}`, { cause: error });
  }
}

async function putAbsent(store: Store, key: string, body: string): Promise<boolean> {
  try {
    await store.put(key, body, { ifAbsent: true });
    return true;
  } catch (error) {
    if (error instanceof PreconditionError) return false;
    throw error;
  }
}

async function requireAbsent(path: string): Promise<void> {
  try {
    await lstat(path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return;
    throw new ConfigError(`cannot write ${path}: ${describeError(error)}`, { cause: error });
  }
  throw existsError(path);
}

function existsError(path: string): ConfigError {
  return new ConfigError(
    `cannot write ${path}: it is there already, and init overwrites nothing: move it aside for a new one`,
    {
      code: 'exists',
    },
  );
}

/** A link fails where the name is taken, whoever was faster. */
async function writeNew(path: string, text: string): Promise<void> {
  const temporary = join(dirname(path), `.reeve-init-${randomBytes(6).toString('hex')}.tmp`);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
      const { size } = await file.stat();
      if (size !== Buffer.byteLength(text)) throw new InternalError(`${temporary} is cut`);
    } finally {
      await file.close();
    }
    await link(temporary, path);
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') throw existsError(path);
    throw new ConfigError(`cannot write ${path}: ${describeError(error)}`, { cause: error });
  } finally {
    await rm(temporary, { force: true });
  }
}
