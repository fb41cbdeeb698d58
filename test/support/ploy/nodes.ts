// Nodes of the strict server.
import type { PloyNode, PloyState } from './model.ts';

export function addNode(state: PloyState, id: string): PloyNode {
  const node: PloyNode = { id, drained: false, heartbeats: [], diagnostics: [], daemonLogs: [] };
  state.nodes.set(id, node);
  return node;
}
