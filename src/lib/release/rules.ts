// What a deploy file must satisfy beyond the shape of its fields: each service by itself, and all of them together.
import { overlap } from '../backup/location.ts';
import { findProblems, type Problem } from '../cluster/rules.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { canFire, parseSchedule } from '../schedule/schedule.ts';
import { claimOf } from './domains.ts';
import { findIngressProblems, isIngressField } from './ingress-rules.ts';
import type { DeployService } from './schema.ts';

/** A service of the file, as written and as it will stand in desired.json. */
export type DefinedService = { written: DeployService; desired: DesiredService };

/** Everything that is wrong; paths start at the list of services. */
export function findFileProblems(services: readonly DefinedService[]): Problem[] {
  const perService = services.flatMap(({ written, desired }, index) =>
    [
      ...findProblems(desired).filter(hasOwnWords(desired)),
      ...findIngressProblems(desired),
      ...edgeProblems(desired),
      ...ownProblems(written),
    ].map(({ path, message }) => ({ path: [index, ...path], message })),
  );
  return [
    ...perService,
    ...duplicateServices(services),
    ...sharedDomains(services),
    ...sharedPrefixes(services),
  ];
}

/** Not refused, but surely not what was meant. */
export function findFileWarnings(services: readonly DefinedService[]): string[] {
  return services
    .filter(({ desired }) => desired.healthCheck !== null && desired.ingress === null)
    .map(
      ({ desired }) =>
        `healthCheck of "${serviceKey(desired)}" has no effect: a service without ingress is not probed`,
    );
}

function hasOwnWords({ ingress }: DesiredService): (problem: Problem) => boolean {
  return (problem) =>
    !isIngressField(problem) && !(ingress?.edge === '' && problem.path.join('.') === 'ingress.edge');
}

function edgeProblems({ ingress }: DesiredService): Problem[] {
  if (ingress?.edge !== '') return [];
  return [{ path: ['ingress', 'edge'], message: 'is missing, and the cluster has no default edge' }];
}

function ownProblems(service: DeployService): Problem[] {
  return [
    ...nodeProblems(service),
    ...secretProblems(service),
    ...scheduleProblems(service),
    ...backupProblems(service),
  ];
}

function nodeProblems({ nodes }: DeployService): Problem[] {
  return findRepeated(nodes).map(({ index, value }) => ({
    path: ['nodes', index],
    message: `"${value}" is there twice`,
  }));
}

/** A name that is both a plain value and a secret has no value that everybody would expect. */
function secretProblems({ env, secrets, secretRefs }: DeployService): Problem[] {
  const places = [
    ...secrets.map((name, index) => ({ name, path: ['secrets', index] })),
    ...secretRefs.map(({ name }, index) => ({ name, path: ['secretRefs', index, 'name'] })),
  ];
  const repeated = findRepeated(places.map(({ name }) => name)).map(({ index, value }) => ({
    path: places[index]?.path ?? [],
    message: `"${value}" is there twice`,
  }));
  const clashing = places
    .filter(({ name }) => Object.hasOwn(env, name))
    .map(({ name, path }) => ({ path, message: `"${name}" stands in env, too: it can be one or the other` }));
  return [...repeated, ...clashing];
}

function scheduleProblems({ cron, timeZone, replicas, ingress, database }: DeployService): Problem[] {
  if (cron === undefined) {
    if (timeZone === undefined) return [];
    return [{ path: ['timeZone'], message: 'is of use only beside cron' }];
  }
  const problems: Problem[] = [...idleProblems(cron, ['cron'])];
  if (replicas > 1)
    problems.push({ path: ['replicas'], message: 'cannot be more than 1 where cron starts the runs' });
  if (ingress !== null)
    problems.push({ path: ['ingress'], message: 'cannot stand beside cron: a run serves nothing' });
  if (database !== undefined) problems.push({ path: ['database'], message: 'cannot stand beside cron' });
  return problems;
}

function backupProblems({ backup, database, nodes }: DeployService): Problem[] {
  if (backup === undefined) return [];
  const problems: Problem[] = [];
  if (database === undefined) problems.push({ path: ['backup'], message: 'needs a database beside it' });
  problems.push(...idleProblems(backup.schedule, ['backup', 'schedule']));
  if (nodes.length > 1) {
    problems.push({
      path: ['nodes'],
      message: 'must be one where there is a backup: dumps of several would mix',
    });
  }
  return problems;
}

/** A schedule of days that no year has. What is no schedule at all is told by the rules of every definition. */
function idleProblems(text: string, path: readonly string[]): Problem[] {
  const parsed = parseSchedule(text);
  if ('fault' in parsed || canFire(parsed.schedule)) return [];
  return [{ path, message: `${JSON.stringify(text)} never comes: no year has such a day` }];
}

function duplicateServices(services: readonly DefinedService[]): Problem[] {
  return findRepeated(services.map(({ desired }) => serviceKey(desired))).map(({ index, value }) => ({
    path: [index],
    message: `"${value}" is there twice`,
  }));
}

function sharedDomains(services: readonly DefinedService[]): Problem[] {
  const owners = new Map<string, { key: string; nodes: readonly string[] }>();
  return services.flatMap(({ written, desired }, index) => {
    const key = serviceKey(desired);
    const claim = claimOf(desired);
    if (claim === undefined) return [];
    const owner = owners.get(claim.place);
    owners.set(claim.place, owner ?? { key, nodes: written.nodes });
    if (owner === undefined || owner.key === key) return [];
    const message = `"${claim.domain}" is the domain of "${owner.key}" on ${owner.nodes.join(', ')} already`;
    return [{ path: [index, 'ingress', 'domain'], message }];
  });
}

/** Retention below one prefix must never meet the dumps of another service. */
function sharedPrefixes(services: readonly DefinedService[]): Problem[] {
  const seen: { key: string; backup: NonNullable<DesiredService['backup']> }[] = [];
  return services.flatMap(({ desired }, index) => {
    const { backup } = desired;
    if (backup === undefined) return [];
    const key = serviceKey(desired);
    const other = seen.find((entry) => overlap(entry.backup, backup));
    seen.push({ key, backup });
    if (other === undefined || other.key === key) return [];
    return [
      { path: [index, 'backup', 'prefix'], message: `lies in the backups of "${other.key}", or the reverse` },
    ];
  });
}

/** Each value that stands in the list before, with its place. */
function findRepeated(values: readonly string[]): { index: number; value: string }[] {
  return values.flatMap((value, index) => (values.indexOf(value) < index ? [{ index, value }] : []));
}
