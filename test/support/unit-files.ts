// The shipped unit files, read as systemd does.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'vitest';

export const shippedDirectory = resolve(import.meta.dirname, '../../systemd');

export type Unit = { name: string; text: string; settings: ReadonlyMap<string, readonly string[]> };

/** Settings by `Section.Key`, in order; comments left out. */
export function parseUnit(name: string): Unit {
  const text = readFileSync(join(shippedDirectory, name), 'utf8');
  const settings = new Map<string, string[]>();
  let section = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('[')) section = line.slice(1, -1);
    const match = /^([A-Za-z]+)=(.*)$/.exec(line);
    if (match === null) continue;
    const key = `${section}.${match[1]}`;
    settings.set(key, [...(settings.get(key) ?? []), match[2] as string]);
  }
  return { name, text, settings };
}

export const units = readdirSync(shippedDirectory)
  .filter((name) => !/\.(conf|cfg)$/.test(name))
  .sort()
  .map(parseUnit);
export const ofKind = (kind: string): Unit[] => units.filter(({ name }) => name.endsWith(`.${kind}`));

/** The setting's value; it may be there once at most. */
export const one = (unit: Unit, key: string): string | undefined => {
  const values = unit.settings.get(key) ?? [];
  expect(values.length, `${unit.name}: ${key}`).toBeLessThanOrEqual(1);
  return values[0];
};

const spanUnits: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 };

/** NaN for what is no span of one unit. */
export function spanMs(text: string | undefined): number {
  const match = /^(\d+)(ms|s|min|h)$/.exec(text ?? '');
  return match === null ? Number.NaN : Number(match[1]) * (spanUnits[match[2] as string] as number);
}
