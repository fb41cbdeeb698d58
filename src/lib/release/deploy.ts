// `deploy`: a file, or the end of a project, as a release.
import { createReadStream } from 'node:fs';
import { mapBounded } from '../bounded.ts';
import { nodeKey } from '../cluster/keys.ts';
import type { DesiredService } from '../cluster/wire.ts';
import type { ClusterConfig } from '../config/config.ts';
import { requireCluster } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, InputError, systemErrorCode } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { hasShards, listNodes, type NodeListing } from '../store/nodes.ts';
import { decodeText } from '../store/text.ts';
import { checkEdges } from './check-edges.ts';
import { findDomainConflicts } from './domains.ts';
import { parallel, readDefaultEdge, readNodes, type Target } from './gather.ts';
import { parseObject } from './json.ts';
import { type DeployFile, maxBytes, type PlacedService, parseDeployFile } from './parse.ts';
import { planDeploy, type Scope } from './plan.ts';
import { type PlannedNode, type Release, type ReleaseOptions, runRelease } from './run.ts';
import { openTarget } from './target.ts';
import { inTurn, type Turn } from './turn.ts';

export type DeployRequest = ReleaseOptions & {
  what: { file: string; service: string | undefined } | { remove: string };
};

/** What is to be there, and what may be touched for it. */
type Intent = { reason: string; action: string; scope: Scope; services: readonly PlacedService[] };

export async function deploy(ctx: Context, request: DeployRequest): Promise<Outcome> {
  const cluster = requireCluster(ctx.config);
  return await inTurn(ctx, cluster, request, (turn) => deployInTurn(ctx, cluster, request, turn));
}

async function deployInTurn(
  ctx: Context,
  cluster: ClusterConfig,
  request: DeployRequest,
  turn: Turn,
): Promise<Outcome> {
  const target = await openTarget(ctx, cluster);
  const known = await listNodes(target.store, target.clusterId);
  const { what } = request;
  const intent = 'remove' in what ? removalIntent(what.remove) : await readIntent(ctx, target, what, known);
  const { states, unreadable } = await readNodes(target, known);
  const nodes = states.map((state): PlannedNode => {
    const wanted = wantedOn(state.node, intent);
    const edit: PlannedNode['edit'] = (document) => planDeploy(document, intent.scope, wanted);
    return { state, edit, plan: edit(state.document) };
  });
  if ('remove' in what && unreadable.length === 0 && nodes.every(({ plan }) => plan.changes.length === 0)) {
    ctx.log.warning(`no node has anything of project "${what.remove}"`);
  }
  const after = nodes.map(({ state, plan }) => ({ node: state.node, plan }));
  const [conflict] = findDomainConflicts(after, intent.services);
  if (conflict !== undefined) throw new InputError(`cannot ${intent.action}: ${conflict}`);
  const release: Release = {
    reason: intent.reason,
    nodes,
    failures: unreadable.map(({ node, error }) => ({ node, message: error.message })),
    question: questionFor(ctx, request, nodes),
    awaited: awaitedKeys(intent.services),
  };
  return await runRelease(ctx, { cluster, target, options: request, turn }, release);
}

function removalIntent(project: string): Intent {
  const reason = `deploy --remove ${project}`;
  return { reason, action: reason, scope: { projects: new Set([project]) }, services: [] };
}

async function readIntent(
  ctx: Context,
  target: Target,
  { file, service }: { file: string; service: string | undefined },
  known: ReadonlyMap<string, NodeListing>,
): Promise<Intent> {
  const parsed = parseDeployFile(await readText(file), file, {
    clusterId: target.clusterId,
    defaultEdge: await readDefaultEdge(target),
    backups: requireCluster(ctx.config).backups,
  });
  for (const warning of parsed.warnings) ctx.log.warning(warning);
  await checkNodes(target, { file, parsed, known });
  const edges = await checkEdges(target, { file, services: parsed.services, known });
  for (const warning of edges) ctx.log.warning(warning);
  const about = { reason: `deploy ${file}`, action: `deploy "${file}"` };
  if (service === undefined) {
    const projects = new Set(parsed.services.map((placed) => placed.service.project));
    return { ...about, scope: { projects }, services: parsed.services };
  }
  const services = parsed.services.filter(({ key }) => key === service);
  if (services.length === 0) throw new InputError(`cannot deploy "${file}": it has no service "${service}"`);
  return { ...about, scope: { key: service }, services };
}

async function readText(file: string): Promise<string> {
  try {
    return decodeText(await readStart(file), file);
  } catch (error) {
    if (error instanceof InputError) throw error;
    const cause = systemErrorCode(error) === 'ENOENT' ? 'there is no such file' : describeError(error);
    throw new InputError(`cannot read "${file}": ${cause}`, { cause: error });
  }
}

/** So much of it that its size can be judged: a device or a pipe may have no end. */
async function readStart(file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(file, { end: maxBytes })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** So many registry entries are read in one go. */
const fewNodes = 50;

/** A misspelt node would be a directory that nobody reads. */
async function checkNodes(
  { store, clusterId }: Target,
  { file, parsed, known }: { file: string; parsed: DeployFile; known: ReadonlyMap<string, NodeListing> },
): Promise<void> {
  const named = [...new Set(parsed.services.flatMap(({ nodes }) => nodes))];
  const unknown = named.filter((node) => !known.has(node));
  if (unknown.length > 0) {
    const list = known.size === 0 ? 'no node at all' : [...known.keys()].join(', ');
    const names = unknown.map((node) => `"${node}"`).join(', ');
    throw new InputError(`cannot deploy "${file}": the store does not know ${names}; it knows ${list}`);
  }
  const mayBeEdge = (node: string): boolean => {
    const listing = known.get(node);
    // What has been deployed to before is none. Of many new ones those are asked that have something of an edge's.
    if (listing === undefined || listing.has('desired.json')) return false;
    return named.length <= fewNodes || listing.has('edge.json') || hasShards(listing);
  };
  const roles = await mapBounded(named.filter(mayBeEdge), parallel, async (node) => {
    const entry = parseObject((await store.get(nodeKey(clusterId, node)))?.text);
    return { node, isEdge: entry?.['role'] === 'edge' };
  });
  const edge = roles.find(({ isEdge }) => isEdge);
  if (edge !== undefined) {
    throw new InputError(
      `cannot deploy "${file}": node "${edge.node}" is an edge, and edges run no services`,
    );
  }
}

function wantedOn(node: string, { services }: Intent): DesiredService[] {
  return services.filter(({ nodes }) => nodes.includes(node)).map(({ service }) => service);
}

/** What the file says, it may remove; at a terminal the person is asked all the same, and a whole project always. */
function questionFor(
  ctx: Context,
  { what }: DeployRequest,
  nodes: readonly PlannedNode[],
): string | undefined {
  const removed = nodes.flatMap(({ plan }) => plan.changes.filter(({ action }) => action === 'remove'));
  if (removed.length === 0) return undefined;
  if ('remove' in what) return `remove project ${what.remove} everywhere?`;
  if (!ctx.interactive) return undefined;
  const keys = [...new Set(removed.map(({ project, service }) => `${project}/${service}`))];
  return `remove ${keys.join(', ')} where the file has it no more?`;
}

function awaitedKeys(services: readonly PlacedService[]): Map<string, Set<string>> {
  const awaited = new Map<string, Set<string>>();
  for (const { key, nodes } of services) {
    for (const node of nodes) awaited.set(node, (awaited.get(node) ?? new Set()).add(key));
  }
  return awaited;
}
