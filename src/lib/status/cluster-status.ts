// A node's status.json as the cluster's overview shows it. Whichever version has written it, and whoever else: what is of
// another shape is that node's own trouble. Pure.
import type { NodeStatus, ServiceStatus } from '../cluster/wire.ts';
import { InputError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';

/** What the overview goes by; all else is as the node has written it. */
export type ShownStatus = Partial<NodeStatus> & Pick<NodeStatus, 'lastSeen' | 'services'>;

/** Throws InputError for what is no object, or no status. */
export function parseShownStatus(text: string, key: string): ShownStatus {
  const status = parseObjectOf(text, key);
  const { lastSeen, services } = status;
  if (typeof lastSeen !== 'string') throw new InputError(`cannot read "${key}": lastSeen is no text`);
  if (!Array.isArray(services) || !services.every(isService)) {
    throw new InputError(`cannot read "${key}": services is no list of services`);
  }
  return { ...status, lastSeen, services };
}

/** Throws InputError for what is no object. */
export function parseObjectOf(text: string, key: string): Record<string, unknown> {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new InputError(`cannot read "${key}": it is not JSON`);
  }
  if (isRecord(raw)) return raw;
  throw new InputError(`cannot read "${key}": it is no JSON object`);
}

function isService(raw: unknown): raw is ServiceStatus {
  return (
    isRecord(raw) &&
    ['project', 'service', 'state'].every((name) => typeof raw[name] === 'string') &&
    ['runningReplicas', 'desiredReplicas'].every((name) => typeof raw[name] === 'number')
  );
}
