// How far a node has come with its desired state, as reeve.json tells it, and whether a deploy has arrived. Pure.
import { serviceKey } from '../cluster/wire.ts';
import { parseObject } from './json.ts';

type FailingService = { project: string; service: string; message: string };

export type NodeProgress = {
  /** `updatedAt` of the desired state that the node worked on last. */
  desiredUpdatedAt: string | undefined;
  converged: boolean;
  failing: readonly FailingService[];
};

/** Undefined where the node has told nothing that we understand. */
export function parseProgress(text: string | undefined): NodeProgress | undefined {
  const raw = parseObject(text);
  if (raw?.['version'] !== 1) return undefined;
  const desired = raw['desired'] as { updatedAt?: unknown } | null | undefined;
  const failing = Array.isArray(raw['failing']) ? raw['failing'].filter(isFailing) : [];
  return {
    desiredUpdatedAt: typeof desired?.updatedAt === 'string' ? desired.updatedAt : undefined,
    converged: raw['converged'] === true,
    failing: failing.map(({ project, service, message }) => ({ project, service, message })),
  };
}

/** The node has seen the desired state of that instant, or a later one. */
export function hasReached({ desiredUpdatedAt }: NodeProgress, updatedAt: string): boolean {
  if (desiredUpdatedAt === undefined) return false;
  return Date.parse(desiredUpdatedAt) >= Date.parse(updatedAt);
}

/** What a deploy waits for on one node. */
export type Awaited = {
  node: string;
  updatedAt: string;
  /** Services that the deploy answers for: others that fail there are not its failure. */
  keys: ReadonlySet<string>;
};

export type Arrival =
  | { kind: 'converged' }
  | { kind: 'waiting'; why: string }
  | { kind: 'failed'; failing: readonly FailingService[] };

export function judgeArrival(progress: NodeProgress | undefined, { updatedAt, keys }: Awaited): Arrival {
  if (progress === undefined) return { kind: 'waiting', why: 'it has not told how far it is' };
  if (!hasReached(progress, updatedAt))
    return { kind: 'waiting', why: 'it has not seen the new desired state yet' };
  if (progress.converged) return { kind: 'converged' };
  const own = progress.failing.filter((service) => keys.has(serviceKey(service)));
  if (own.length > 0) return { kind: 'failed', failing: own };
  const others = progress.failing.map((service) => `${serviceKey(service)} (${service.message})`);
  const why = others.length === 0 ? 'it is at work' : `it is held up by ${others.join(', ')}`;
  return { kind: 'waiting', why };
}

function isFailing(value: unknown): value is FailingService {
  if (typeof value !== 'object' || value === null) return false;
  const { project, service, message } = value as Record<string, unknown>;
  return typeof project === 'string' && typeof service === 'string' && typeof message === 'string';
}
