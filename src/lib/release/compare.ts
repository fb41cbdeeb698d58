// When two definitions of a service are the same, and what differs where they are not. Sets compare as sets, lists as lists.
import { canonicalJson, compareBytewise } from '../cluster/canonical.ts';
import { serviceSchema } from '../cluster/schema.ts';
import { findUnknownFields } from '../cluster/shape.ts';
import type { DesiredService } from '../cluster/wire.ts';

/** Names of the fields that differ, for people: `image 1 -> 2`, `env.LOG_LEVEL`. Values of env are never told. */
export function findDifferences(before: unknown, after: DesiredService): string[] {
  const parsed = serviceSchema.safeParse(before);
  if (!parsed.success) return ['its definition, which could not be read'];
  const left = toComparable(parsed.data);
  const right = toComparable(after);
  const names = [...new Set([...Object.keys(right), ...Object.keys(left)])];
  const differing = names.flatMap((name) => describeDifference(name, left[name], right[name]));
  return [
    ...differing,
    ...findUnknownFields(serviceSchema, before).map((field) => `${field} (unknown) removed`),
  ];
}

/** One text for one definition, whatever the order of its keys and sets; a restart is no other definition. */
export function definitionText(service: unknown): string {
  const parsed = serviceSchema.safeParse(service);
  return canonicalJson(parsed.success ? { ...toComparable(parsed.data), restartAt: undefined } : service);
}

function toComparable(service: DesiredService): Record<string, unknown> {
  return { ...service, secretRefs: sortByName(service.secretRefs), volumes: sortByName(service.volumes) };
}

function describeDifference(name: string, before: unknown, after: unknown): string[] {
  if (canonicalJson(before) === canonicalJson(after)) return [];
  if (name === 'env') {
    return differingNames(before as DesiredService['env'], after as DesiredService['env']).map(
      (key) => `env.${key}`,
    );
  }
  if (isPlain(before) && isPlain(after)) return [`${name} ${before} -> ${after}`];
  return [name];
}

function differingNames(before: DesiredService['env'], after: DesiredService['env']): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compareBytewise);
  return names.filter((name) => before[name] !== after[name]);
}

function isPlain(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function sortByName<Named extends { name: string }>(named: readonly Named[]): Named[] {
  return named.toSorted((left, right) => compareBytewise(left.name, right.name));
}
