// What a worker's maps differ in from the files, and the commands that mend it. Pure.
import type { ShownMap } from '../haproxy/parse-workers.ts';

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
    } else if (found.some((other) => other !== value)) {
      // Of all entries of that key, so that two of one key do no harm.
      const what = `${key} had ${found.join(' and ')} instead of ${value}`;
      repairs.push({ what, commands: [`set map ${path} ${key} ${value}`] });
    }
  }
  for (const key of shown.keys()) {
    if (entries.has(key)) continue;
    repairs.push({ what: `${key} was registered no longer`, commands: [`del map ${path} ${key}`] });
  }
  return repairs;
}
