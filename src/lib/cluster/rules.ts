// What a service must satisfy beyond its shape, wherever its definition comes from: names that become paths and arguments, and
// combinations that would destroy data. Pure and free of schemas.
import { namePattern, nodeIdPattern } from '../ids.ts';
import { parseSchedule } from '../schedule/schedule.ts';
import { parseWireDuration } from './duration.ts';
import type { DesiredService } from './wire.ts';

/** `path` leads to the field below the service. */
export type Problem = { path: readonly (string | number)[]; message: string };

const nameRule = 'use lower-case letters, digits and "-", at most 40, not starting with "-"';
const volumeNamePattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const domainLabel = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?';
const domainPattern = new RegExp(`^(\\*\\.)?${domainLabel}(\\.${domainLabel})*$`);
/** Printable ASCII: the path stands in requests and in proxies' configurations, where a blank or a newline would end it. */
const pathPattern = /^\/[\x21-\x7e]*$/;

/** Everything that is wrong with the service, in the order of its fields; none if it may run. */
export function findProblems(service: DesiredService): Problem[] {
  return [
    ...nameProblems(service),
    ...sizeProblems(service),
    ...envProblems(service.env),
    ...scheduleProblems(service),
    ...webProblems(service),
    ...volumeProblems(service),
    ...dataProblems(service),
  ];
}

function nameProblems({ project, service, image }: DesiredService): Problem[] {
  const problems: Problem[] = [];
  if (!namePattern.test(project)) {
    problems.push({ path: ['project'], message: `${quote(project)} is no project name: ${nameRule}` });
  }
  if (!namePattern.test(service)) {
    problems.push({ path: ['service'], message: `${quote(service)} is no service name: ${nameRule}` });
  }
  if (!/^[\x21-\x7e]+$/.test(image) || image.startsWith('-')) {
    problems.push({ path: ['image'], message: `${quote(image)} is no image reference` });
  }
  return problems;
}

/** A host name, or `*.` before one, in either case. */
export function isDomain(text: string): boolean {
  return text.length <= 253 && domainPattern.test(text);
}

export function isHealthPath(text: string): boolean {
  return pathPattern.test(text);
}

/** Far beyond any real service on one node; what is more overflows timers, dates and the engine's numbers. */
const mostReplicas = 1000;
const mostCpu = 1024 * 1024;
const mostMemoryMib = 16 * 1024 * 1024;
const mostPasses = 1000;
const longestMs = 24 * 60 * 60_000;

function sizeProblems({ replicas, cpu, memory, healthCheck, rollout }: DesiredService): Problem[] {
  const sizes: [path: string[], size: number, limit: number, told: string][] = [
    [['replicas'], replicas, mostReplicas, String(mostReplicas)],
    [['cpu'], cpu, mostCpu, String(mostCpu)],
    [['memory'], memory, mostMemoryMib, `${mostMemoryMib} MiB`],
    [['healthCheck', 'intervalMs'], healthCheck?.intervalMs ?? 0, longestMs, `${longestMs} (a day)`],
    [['healthCheck', 'timeoutMs'], healthCheck?.timeoutMs ?? 0, longestMs, `${longestMs} (a day)`],
    [['healthCheck', 'healthyThreshold'], healthCheck?.healthyThreshold ?? 0, mostPasses, String(mostPasses)],
    [['rollout', 'drainTimeout'], parseWireDuration(rollout.drainTimeout), longestMs, 'a day (1440m)'],
    [['rollout', 'stopGrace'], parseWireDuration(rollout.stopGrace), longestMs, 'a day (1440m)'],
  ];
  return sizes
    .filter(([, size, limit]) => size > limit)
    .map(([path, , , told]) => ({ path, message: `cannot be more than ${told}` }));
}

/** Values go through byte for byte; what no environment can hold is refused by name, never by value. */
function envProblems(env: DesiredService['env']): Problem[] {
  const problems: Problem[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (name === '' || /[=\0]/.test(name)) {
      problems.push({ path: ['env'], message: `${quote(name)} is no name of an environment variable` });
    } else if (value.includes('\0')) {
      problems.push({ path: ['env', name], message: 'the value holds a NUL character' });
    }
  }
  return problems;
}

function scheduleProblems({ cron, timeZone, backup }: DesiredService): Problem[] {
  const problems: Problem[] = [];
  const cronFault = findScheduleFault(cron);
  if (cronFault !== undefined) problems.push({ path: ['cron'], message: cronFault });
  const backupFault = findScheduleFault(backup?.schedule);
  if (backupFault !== undefined) problems.push({ path: ['backup', 'schedule'], message: backupFault });
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    problems.push({ path: ['timeZone'], message: `${quote(timeZone)} is no time zone` });
  }
  if (backup?.timeZone !== undefined && !isTimeZone(backup.timeZone)) {
    problems.push({ path: ['backup', 'timeZone'], message: `${quote(backup.timeZone)} is no time zone` });
  }
  return problems;
}

function webProblems({ ingress, healthCheck }: DesiredService): Problem[] {
  const problems: Problem[] = [];
  if (ingress !== null && !isDomain(ingress.domain)) {
    problems.push({ path: ['ingress', 'domain'], message: `${quote(ingress.domain)} is no domain name` });
  }
  if (ingress !== null && !nodeIdPattern.test(ingress.edge)) {
    problems.push({ path: ['ingress', 'edge'], message: `${quote(ingress.edge)} is no node id` });
  }
  if (healthCheck !== null && !isHealthPath(healthCheck.path)) {
    problems.push({
      path: ['healthCheck', 'path'],
      message: `${quote(healthCheck.path)} is no path of a URL`,
    });
  }
  return problems;
}

function volumeProblems({ volumes }: DesiredService): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  for (const [index, { name, path }] of volumes.entries()) {
    if (!volumeNamePattern.test(name)) {
      problems.push({ path: ['volumes', index, 'name'], message: `${quote(name)} is no volume name` });
    }
    if (!/^\/[^\0]+$/.test(path)) {
      problems.push({ path: ['volumes', index, 'path'], message: `${quote(path)} is no path of a mount` });
    }
    for (const [field, value] of Object.entries({ name, path })) {
      if (seen.has(`${field} ${value}`)) {
        problems.push({ path: ['volumes', index, field], message: `${quote(value)} is there twice` });
      }
      seen.add(`${field} ${value}`);
    }
  }
  return problems;
}

function dataProblems({ database, replicas, backup }: DesiredService): Problem[] {
  const problems: Problem[] = [];
  if (database !== undefined && replicas > 1) {
    const message = `a database cannot have ${replicas} replicas: they would be ${replicas} engines on one volume`;
    problems.push({ path: ['replicas'], message });
  }
  if (backup !== undefined && !isKeyPrefix(backup.prefix)) {
    problems.push({ path: ['backup', 'prefix'], message: `${quote(backup.prefix)} is no prefix of keys` });
  }
  return problems;
}

function findScheduleFault(text: string | undefined): string | undefined {
  const parsed = text === undefined ? undefined : parseSchedule(text);
  if (parsed === undefined || 'schedule' in parsed) return undefined;
  return `${quote(text ?? '')} is no schedule: ${parsed.fault}`;
}

function isTimeZone(name: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Empty, or components that cannot climb out of a bucket that is a directory. */
function isKeyPrefix(prefix: string): boolean {
  if (prefix === '') return true;
  const components = prefix.replace(/\/$/, '').split('/');
  return components.every(
    (component) => /^[^\0\\]+$/.test(component) && component !== '.' && component !== '..',
  );
}

function quote(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}...` : value);
}
