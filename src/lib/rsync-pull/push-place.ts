// Where results go: the place as configured, in which `{date}` stands for the day of each result (UTC). Pure.
import { parseEventFileName } from '../deploy-runner/event.ts';

export type ResultGroup = { place: string; names: readonly string[]; isDated: boolean };

const datePart = '{date}';

/** In the order of their names, which is that of time. */
export function groupResults(push: string, names: readonly string[]): ResultGroup[] {
  const isDated = push.includes(datePart);
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const place = isDated ? push.replaceAll(datePart, dateOf(name)) : push;
    groups.set(place, [...(groups.get(place) ?? []), name]);
  }
  return [...groups].map(([place, members]) => ({ place, names: members, isDated }));
}

function dateOf(name: string): string {
  const epochMs = parseEventFileName(name)?.epochMs ?? 0;
  return new Date(epochMs).toISOString().slice(0, 10);
}
