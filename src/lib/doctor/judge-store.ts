// The store: can it be reached and written, does its clock agree with ours, is this node's desired state one. Pure.
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, warning } from './finding.ts';

export type StoreFacts = {
  url: string;
  /** Of the cluster, by registry entry or desired state; undefined where only this node's own part was looked at. */
  nodes: number | undefined;
  /** Undefined on a machine that is no node. */
  node?: NodeInStore;
};

type NodeInStore = {
  nodeId: string;
  /** Something was written to try it. */
  isProbed: boolean;
  /** How far the store's clock is ahead of ours; undefined where nothing was written to tell. */
  clockAheadMs: number | undefined;
  writeError: string | undefined;
  /** What the registry says runs here. */
  agentType: string | undefined;
  desired:
    | { kind: 'none' }
    | { kind: 'of-an-edge' }
    | { kind: 'refused'; error: string }
    | { kind: 'document'; rejected: readonly string[] };
  /** Domains that are published below this id, where no edge reads them. */
  strays: readonly string[];
  /** Of the edge on this machine. */
  edgeId: string | undefined;
};

/** Further apart, "stale after a minute" begins to be wrong; much further, every reader calls the node dead. */
const clockWarningMs = 5_000;
const clockFailureMs = 30_000;

export function judgeStore({ url, nodes, node }: StoreFacts): Finding[] {
  const reached =
    nodes === undefined ? "this node's part can be read" : `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
  if (node === undefined) return [ok(reached, { where: url })];
  return [
    ...judgeWriting(url, reached, node),
    ...judgeClock(url, node),
    ...judgeDesired(url, node),
    ...judgeStrays(url, node),
    ...judgeAgentType(url, node),
  ];
}

/** `endpoint` is the configuration's, of a store that is a bucket. scripts/bootstrap knows the first words. */
export function judgeStoreFailure(
  { store, endpoint }: { store: string; endpoint?: string | undefined },
  error: string,
): Finding[] {
  const what = `it cannot be reached: ${error}`;
  if (!store.startsWith('s3:')) {
    return [failure(what, { where: store, fix: 'mount the directory, or correct cluster.store' })];
  }
  const where = endpoint === undefined ? store : `${store} at ${endpoint}`;
  const fix = 'credentials or a role for this machine, or correct cluster.store, region or endpoint';
  return [failure(what, { where, fix })];
}

function judgeWriting(url: string, reached: string, { isProbed, writeError }: NodeInStore): Finding[] {
  if (writeError === undefined)
    return [ok(isProbed ? `${reached}, and it can be written` : reached, { where: url })];
  return [failure(writeError, { where: url, fix: 'give this node the right to write below its own prefix' })];
}

function judgeClock(url: string, { clockAheadMs }: NodeInStore): Finding[] {
  if (clockAheadMs === undefined) return [];
  const offMs = Math.abs(clockAheadMs);
  if (offMs < clockWarningMs) return [];
  const what = `this clock is ${formatDuration(offMs)} ${clockAheadMs > 0 ? 'behind' : 'ahead of'} the store's`;
  const details = { where: url, fix: 'let systemd-timesyncd or chrony set the clock on both' };
  return [offMs < clockFailureMs ? warning(what, details) : failure(what, details)];
}

function judgeDesired(url: string, { nodeId, desired }: NodeInStore): Finding[] {
  const where = `${url}, node ${nodeId}`;
  switch (desired.kind) {
    case 'none':
      return [warning('no desired state: nothing is done here', { where, fix: '`reeve deploy FILE`' })];
    case 'of-an-edge':
      return [];
    case 'refused':
      return [failure(desired.error, { where, fix: 'deploy again with a version that fits' })];
    case 'document':
      return desired.rejected.map((reason) => failure(reason, { where, fix: 'deploy the service again' }));
  }
}

function judgeStrays(url: string, { nodeId, strays, edgeId }: NodeInStore): Finding[] {
  if (strays.length === 0) return [];
  const fix = edgeId === undefined ? 'deploy with the id of an edge' : `deploy with ingress.edge: ${edgeId}`;
  return [
    failure(
      `nobody routes ${listNames(strays)}: the services name "${nodeId}" as their edge, which is none`,
      {
        where: `${url}, node ${nodeId}`,
        fix,
      },
    ),
  ];
}

function judgeAgentType(url: string, { nodeId, agentType }: NodeInStore): Finding[] {
  if (agentType !== 'ts') return [];
  return [
    warning("the registry says that launch-pad's TypeScript agent runs here", {
      where: `${url}, node ${nodeId}`,
      fix: 'write "agentType": "rust" into its node.json',
    }),
  ];
}
