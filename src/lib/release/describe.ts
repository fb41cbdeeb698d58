// A release in words: what changes on which node, and what came of it. Pure; values of env never appear.
import type { Change } from './plan.ts';

export type NodeFailure = { node: string; message: string };

export function describeChange(node: string, { action, project, service, fields }: Change): string {
  const details = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  return `${node}: ${action} ${project}/${service}${details}`;
}

export function describeFailure({ node, message }: NodeFailure): string {
  return `${node}: ${message}`;
}

/** `3 changes on web-1 and web-2`, or how many nodes where they are many. */
export function describeExtent(changes: number, nodes: readonly string[]): string {
  const places = nodes.length > 6 ? `${nodes.length} nodes` : nodes.join(', ');
  return `${changes} ${changes === 1 ? 'change' : 'changes'} on ${places}`;
}
