// The announcement of removals: reconcile's brake lets pass what stands here. Pure.
import { parseObject } from './json.ts';
import { hasReached, type NodeProgress } from './progress.ts';

export type Removals = { version: 1; announcedAt: string; services: string[] };

export type RemovalsInput = {
  previous: Removals | undefined;
  progress: NodeProgress | undefined;
  /** Keys that this deploy removes from the node. */
  removed: readonly string[];
  /** Keys that are in the node's desired state afterwards. */
  present: ReadonlySet<string>;
  /** `updatedAt` of the desired state that takes them away. */
  announcedAt: string;
};

/** What is to be announced: these removals and earlier ones that the node has not performed yet. */
export function planRemovals({ previous, progress, removed, present, announcedAt }: RemovalsInput): Removals {
  const open = previous === undefined || isPerformed(previous, progress) ? [] : previous.services;
  const services = [...new Set([...open, ...removed])].filter((key) => !present.has(key)).sort();
  return { version: 1, announcedAt, services };
}

/** Undefined for what is no announcement: nothing is announced then. */
export function parseRemovals(text: string): Removals | undefined {
  const value = parseObject(text);
  const { version, announcedAt, services } = value ?? {};
  if (version !== 1 || typeof announcedAt !== 'string' || !Array.isArray(services)) return undefined;
  return { version, announcedAt, services: services.filter((key) => typeof key === 'string') };
}

function isPerformed({ announcedAt }: Removals, progress: NodeProgress | undefined): boolean {
  return progress?.converged === true && hasReached(progress, announcedAt);
}
