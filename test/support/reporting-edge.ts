// The part of an edge that a node waits for: it reads the node's shard and reports in its own reeve.json what it has applied.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shardFingerprint } from '../../src/lib/cluster/fingerprint.ts';
import type { UpstreamShard } from '../../src/lib/cluster/wire.ts';
import type { TestNode } from './node.ts';

export type ReportingEdge = {
  /** Nothing is reported until it is told to go on. */
  pause(): void;
  goOn(): void;
  stop(): Promise<void>;
};

/** Looks for a changed shard a hundred times a second. `nodeId`: whom its report says to be of. */
export function startReportingEdge(node: TestNode, { nodeId = 'edge-1' } = {}): ReportingEdge {
  const edge = 'edge-1';
  let isOver = false;
  let isPaused = false;
  let reported: string | undefined;
  const look = (): void => {
    const shard = readShard(node, edge);
    const fingerprint = shard === undefined ? undefined : shardFingerprint(shard);
    if (fingerprint === undefined || fingerprint === reported) return;
    writeReport(node, edge, edgeReport(nodeId, { [node.nodeId]: fingerprint }));
    reported = fingerprint;
  };
  const work = async (): Promise<void> => {
    while (!isOver) {
      if (!isPaused) look();
      await sleep(10);
    }
  };
  const over = work();
  return {
    pause: () => {
      isPaused = true;
    },
    goOn: () => {
      isPaused = false;
    },
    stop: async () => {
      isOver = true;
      await over;
    },
  };
}

/** An edge's reeve.json. */
export function edgeReport(nodeId: string, applied: Readonly<Record<string, string>>): object {
  return {
    ...{ version: 1, nodeId, reeve: '0.1.0', updatedAt: new Date().toISOString() },
    ...{ desired: null, converged: true, failing: [], draining: [] },
    edge: { balancer: 'haproxy', applied, rejected: [], repairs: 0 },
  };
}

/** Whole or not at all, as the store writes. */
export function writeReport(node: TestNode, edge: string, content: object | string): void {
  const path = join(node.storeDir, `nodes/${edge}/reeve.json`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, typeof content === 'string' ? content : JSON.stringify(content));
  renameSync(`${path}.new`, path);
}

function readShard(node: TestNode, edge: string): UpstreamShard | undefined {
  try {
    return JSON.parse(
      readFileSync(join(node.storeDir, `nodes/${edge}/upstream/${node.nodeId}.json`), 'utf8'),
    );
  } catch {
    return undefined;
  }
}
