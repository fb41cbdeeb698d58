// From what a configuration asks for and what is there, the changes to make. Pure.
import type { UnitFacts } from './facts.ts';
import type { DropIn } from './render.ts';
import { switches } from './units.ts';

export type UnitChange =
  | { kind: 'write'; unit: string; text: string; was: string | undefined }
  | { kind: 'remove'; unit: string; was: string }
  | { kind: 'enable'; unit: string }
  | { kind: 'disable'; unit: string };

/** `enabled`: those of the switches that are to be on. */
export type UnitsWanted = { dropIns: readonly DropIn[]; enabled: readonly string[] };

export function planUnits(wanted: UnitsWanted, facts: UnitFacts): UnitChange[] {
  const units = new Set(wanted.dropIns.map(({ unit }) => unit));
  const written = wanted.dropIns.flatMap(({ unit, text }): UnitChange[] => {
    const was = facts.dropIns.get(unit);
    return was === text ? [] : [{ kind: 'write', unit, text, was }];
  });
  const removed = [...facts.dropIns]
    .filter(([unit]) => !units.has(unit))
    .map(([unit, was]): UnitChange => ({ kind: 'remove', unit, was }));
  return [...written, ...removed, ...planSwitches(wanted.enabled, facts.enabled)];
}

function planSwitches(wanted: readonly string[], enabled: ReadonlySet<string>): UnitChange[] {
  return switches.flatMap(({ unit }): UnitChange[] => {
    const isWanted = wanted.includes(unit);
    if (isWanted === enabled.has(unit)) return [];
    return [{ kind: isWanted ? 'enable' : 'disable', unit }];
  });
}

/** A change as lines of a diff: what goes, what comes. */
export function describeChange(change: UnitChange, pathOf: (unit: string) => string): string[] {
  switch (change.kind) {
    case 'write':
      return [`${pathOf(change.unit)}:`, ...diffLines(change.was ?? '', change.text)];
    case 'remove':
      return [`${pathOf(change.unit)}:`, ...diffLines(change.was, '')];
    case 'enable':
      return [`${change.unit}: to be switched on`];
    case 'disable':
      return [`${change.unit}: to be switched off`];
  }
}

function diffLines(before: string, after: string): string[] {
  const [old, fresh] = [lines(before), lines(after)];
  const told = [
    ...old.filter((line) => !fresh.includes(line)).map((line) => `- ${line}`),
    ...fresh.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ];
  return told.length === 0 ? ['~ the same lines, in another order, number or spacing'] : told;
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
