// What a deploy makes of one node's desired state. Pure: the document as it is and what is wanted in, the services as they
// shall be and every change with its reason out. What is out of scope stays as it is, to the byte.
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { findDifferences } from './compare.ts';
import { type RawDesired, type RawService, renderService } from './raw-document.ts';

export type Change = {
  action: 'add' | 'change' | 'remove';
  project: string;
  service: string;
  /** What is different, for people; empty for what is added or removed. */
  fields: readonly string[];
};

export type NodePlan = { services: readonly RawService[]; changes: readonly Change[] };

/** A change of one node's desired state; applied again to what is there then, when somebody else was quicker. */
export type Edit = (document: RawDesired) => NodePlan;

/** What a deploy may touch: whole projects, or one service. */
export type Scope = { projects: ReadonlySet<string> } | { key: string };

/** Afterwards exactly the wanted services are there of what is in scope. */
export function planDeploy(document: RawDesired, scope: Scope, wanted: readonly DesiredService[]): NodePlan {
  const left = new Map(wanted.map((service) => [serviceKey(service), service]));
  const met = new Set<string>();
  const changes: Change[] = [];
  const services = document.services.flatMap((present): RawService[] => {
    const { key } = present;
    if (key === undefined || !isInScope(scope, key)) return [present];
    const target = left.get(key);
    if (target === undefined) {
      // A second definition of a service that has just been written goes without a word: the service itself stays.
      if (!met.has(key)) changes.push(toChange('remove', key, []));
      met.add(key);
      return [];
    }
    left.delete(key);
    met.add(key);
    return [planService(present, target, changes)];
  });
  const added = [...left.values()].map((service) => {
    changes.push(toChange('add', serviceKey(service), []));
    return renderService(service);
  });
  return { services: [...services, ...added], changes };
}

/** A restart that a person asked for outlives a deploy that says nothing of restarts, or each deploy would restart again. */
function planService(present: RawService, target: DesiredService, changes: Change[]): RawService {
  const restartAt = target.restartAt ?? restartAtOf(present.value);
  const wanted = restartAt === undefined ? target : withRestartAt(target, restartAt);
  const fields = findDifferences(present.value, wanted);
  if (fields.length === 0) return present;
  changes.push(toChange('change', serviceKey(target), fields));
  return renderService(wanted);
}

/** New `restartAt` for one service; everything else in its definition stays, unknown fields too. */
export function planRestart(document: RawDesired, key: string, restartAt: string): NodePlan {
  const changes: Change[] = [];
  const services = document.services.map((present) => {
    if (present.key !== key) return present;
    changes.push(toChange('change', key, [`restartAt ${restartAt}`]));
    return renderService({ ...(present.value as DesiredService), restartAt });
  });
  return { services, changes };
}

export function toChange(action: Change['action'], key: string, fields: readonly string[]): Change {
  const [project = '', service = ''] = splitKey(key);
  return { action, project, service, fields };
}

export function restartAtOf(value: unknown): string | undefined {
  const restartAt = (value as { restartAt?: unknown }).restartAt;
  return typeof restartAt === 'string' ? restartAt : undefined;
}

/** With `restartAt` in the place where desired.json has it. */
export function withRestartAt(service: DesiredService, restartAt: string): DesiredService {
  const {
    project,
    service: name,
    image,
    cpu,
    memory,
    replicas,
    env,
    secretRefs,
    restartAt: _,
    ...rest
  } = service;
  return { project, service: name, image, cpu, memory, replicas, env, secretRefs, restartAt, ...rest };
}

function isInScope(scope: Scope, key: string): boolean {
  if ('key' in scope) return scope.key === key;
  return scope.projects.has(splitKey(key)[0] as string);
}

/** What is met in a document may be anything; the project ends at the first slash. */
function splitKey(key: string): [string, string] {
  const slash = key.indexOf('/');
  return [key.slice(0, slash), key.slice(slash + 1)];
}
