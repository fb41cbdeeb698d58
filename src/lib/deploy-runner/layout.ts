// Where things are in the tree of the control side and in a node's checkout. Names are trusted: whoever asks has checked them.
import { dirname, join } from 'node:path';
import { actionFileName } from './names.ts';

/** Directories of the control side; an action is in one of them at any instant. */
export const actionStates = [
  'pending',
  'approved',
  'rejected',
  'running',
  'completed',
  'failed',
  'cancelled',
] as const;

export type ActionState = (typeof actionStates)[number];

/** `root`: the directory `actions`. */
export function stateDirectory(root: string, state: ActionState): string {
  return join(root, state);
}

export function statePath(root: string, state: ActionState, actionId: string): string {
  return join(root, state, actionFileName(actionId));
}

/** What a node pulls. */
function deployDirectory(root: string, node: string): string {
  return join(root, 'deploy', node);
}

export function deployPath(root: string, node: string, actionId: string): string {
  return join(deployDirectory(root, node), actionFileName(actionId));
}

/** Beside `actions`: what nodes push. Results are in `<node>/`, or in `<YYYY-MM-DD>/<node>/`. */
export function eventsRoot(root: string): string {
  return join(dirname(root), 'events');
}

export function nodeEventsDirectory(root: string, node: string): string {
  return join(eventsRoot(root), node);
}

/** `date`: YYYY-MM-DD. */
export function datedEventsDirectory(root: string, date: string, node: string): string {
  return join(eventsRoot(root), date, node);
}

export const eventDatePattern = /^\d{4}-\d{2}-\d{2}$/;

/** In a checkout. */
export function servicesFile(checkout: string, node: string): string {
  return join(checkout, 'hosts', node, 'services.yaml');
}

export function composeFile(checkout: string, service: string): string {
  return join(checkout, 'services', service, 'docker-compose.yml');
}
