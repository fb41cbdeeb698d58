// Where things are in the tree of the control side and in a node's checkout. Names are trusted: whoever asks has checked them.
import { dirname, join } from 'node:path';

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

/** What nodes pull: names below the directory `actions`. */
export const deployRoot: readonly string[] = ['deploy'];

export function deployNames(node: string): readonly string[] {
  return [...deployRoot, node];
}

/** Beside `actions`: what nodes push. Results are in `<node>/`, or in `<YYYY-MM-DD>/<node>/`. */
export function eventsRoot(root: string): string {
  return join(dirname(root), 'events');
}

/** Below it. */
export function nodeEventsNames(node: string): readonly string[] {
  return [node];
}

/** Below it. `date`: YYYY-MM-DD. */
export function datedEventsNames(date: string, node: string): readonly string[] {
  return [date, node];
}

export const eventDatePattern = /^\d{4}-\d{2}-\d{2}$/;

/** In a checkout. */
export function servicesFile(checkout: string, node: string): string {
  return join(checkout, 'hosts', node, 'services.yaml');
}

export function composeFile(checkout: string, service: string): string {
  return join(checkout, 'services', service, 'docker-compose.yml');
}
