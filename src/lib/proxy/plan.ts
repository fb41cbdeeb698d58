// What a worker's maps differ in from the files, and the commands that mend it. Pure.
import type { ShownEntry, ShownMap } from '../haproxy/parse-workers.ts';
import { isInstance } from './parse.ts';

export type MapFile = { path: string; entries: ReadonlyMap<string, string> };

export type Repair = {
  /** For people: `blog has 20001 instead of 20002`. */
  what: string;
  commands: readonly string[];
};

/** Each repair is a single change for whoever is just being served: no entry is gone for a moment. */
export function planRepairs({ path, entries }: MapFile, shown: ShownMap): Repair[] {
  const repairs: Repair[] = [];
  for (const [key, value] of entries) {
    const found = shown.get(key);
    if (found === undefined) {
      repairs.push({ what: `${key} was missing (${value})`, commands: [`add map ${path} ${key} ${value}`] });
    } else if (found.some((other) => other.value !== value)) {
      // Of all entries of that key, so that two of one key do no harm.
      const had = found.map((other) => other.value).join(' and ');
      const what = `${key} had ${had} instead of ${value}`;
      repairs.push({ what, commands: [`set map ${path} ${key} ${value}`] });
    }
  }
  for (const [key, found] of shown) if (!entries.has(key)) repairs.push(planRemoval(path, key, found));
  return repairs;
}

/** A key that somebody has written into the file may be such that no command can have it in it. */
function planRemoval(path: string, key: string, found: readonly ShownEntry[]): Repair {
  if (isInstance(key)) {
    return { what: `${key} was registered no longer`, commands: [`del map ${path} ${key}`] };
  }
  const commands = found.map(({ ref }) => `del map ${path} #${ref}`);
  return { what: `${JSON.stringify(key)} was there, which is no instance`, commands };
}
