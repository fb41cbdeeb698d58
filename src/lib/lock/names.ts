// The names of all locks and the one order in which they may be taken. Nowhere else is a lock name made.
import { InputError, UsageError } from '../errors.ts';
import { externalIdPattern, namePattern, safeFileId } from '../ids.ts';

const concernLocks = [
  'reconcile',
  'claim',
  'backup',
  'edge',
  'rsync-pull',
  'deploy-action',
  'action',
  'logs',
  'listen',
  'install',
  'heartbeat',
] as const;

type ConcernLock = (typeof concernLocks)[number];

/** From outer to inner, and inside all others. Held for milliseconds, but for the exchange of a token for a certificate. */
const momentLocks = ['slots', 'proxy', 'status', 'bootstrap', 'results'] as const;

export type LockName =
  | ConcernLock
  | `job@${string}`
  | `command@${string}`
  | `service@${string}@${string}`
  | 'slots'
  | 'proxy'
  | 'status'
  | 'bootstrap'
  | 'results';

/** An id from outside that would not make a safe file name is replaced by its sha256. */
export function jobLock(id: string): LockName {
  return `job@${safeFileId(id)}`;
}

export function commandLock(id: string): LockName {
  return `command@${safeFileId(id)}`;
}

export function serviceLock(service: { project: string; service: string }): LockName {
  for (const name of [service.project, service.service]) {
    if (!namePattern.test(name)) {
      throw new InputError(`cannot lock a service: ${JSON.stringify(name)} is not a project or service name`);
    }
  }
  return `service@${service.project}@${service.service}`;
}

/** A lock's name as a person types it. */
export function parseLockName(text: string): LockName {
  if (isLockName(text)) return text;
  const known = `${concernLocks.join(', ')}, job@ID, command@ID, service@PROJECT@NAME, ${momentLocks.join(', ')}`;
  throw new UsageError(`cannot use lock ${JSON.stringify(text)}: the locks are ${known}`);
}

export function isLockName(text: string): text is LockName {
  if ((momentLocks as readonly string[]).includes(text)) return true;
  if ((concernLocks as readonly string[]).includes(text)) return true;
  const [kind, first = '', second, ...rest] = text.split('@');
  if (rest.length > 0) return false;
  if (kind === 'service') return namePattern.test(first) && namePattern.test(second ?? '');
  return (kind === 'job' || kind === 'command') && second === undefined && externalIdPattern.test(first);
}

/**
 * Where a lock stands from outer to inner: a concern, a job or command, services, what is held for moments. Of services a
 * flow may hold several, taken in order of their names; of everything else one.
 */
function lockLevel(name: LockName): number {
  const moment = (momentLocks as readonly string[]).indexOf(name);
  if (moment >= 0) return 3 + moment;
  if (name.startsWith('service@')) return 2;
  return name.includes('@') ? 1 : 0;
}

/** Negative if `a` has to be taken before `b`. By code unit, so that every process sorts alike whatever its locale. */
export function compareLockNames(a: LockName, b: LockName): number {
  const byLevel = lockLevel(a) - lockLevel(b);
  if (byLevel !== 0) return byLevel;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** True if a flow that holds `outer` as its innermost lock may take `inner`. */
export function mayTakeInside(outer: LockName, inner: LockName): boolean {
  const isService = lockLevel(outer) === 2 && lockLevel(inner) === 2;
  return isService ? compareLockNames(outer, inner) < 0 : lockLevel(outer) < lockLevel(inner);
}
