// Paths that a configuration names and the sandbox of a unit has to let it reach. Pure.
import { quote } from './quote.ts';

/** A path that the service has to reach, and why. */
export type Opening = { why: string; path: string; write: boolean; zone: Zone | undefined };

/** What the sandbox covers: homes by ProtectHome=, temporary files by PrivateTmp=. */
export type Zone = 'home' | 'tmp';
export const zones: readonly (readonly [prefix: string, zone: Zone])[] = [
  ['/home', 'home'],
  ['/root', 'home'],
  ['/run/user', 'home'],
  ['/tmp', 'tmp'],
  ['/var/tmp', 'tmp'],
];

export function renderOpening({ why, path, write, zone }: Opening): string[] {
  // "-": where the directory is missing the unit still starts, and reeve says in words what it misses. Each run is a new
  // process with a new view of the file system, so nothing stays hidden once it is there.
  if (zone === undefined) return [`# ${why}`, `ReadWritePaths=${quote(`-${path}`)}`];
  return [`# ${why}`, `${write ? 'BindPaths' : 'BindReadOnlyPaths'}=${quote(`-${path}`, ':')}`];
}

export function zoneOf(path: string): Zone | undefined {
  return zones.find(([prefix]) => isBelowAny(path, [prefix]))?.[1];
}

export function isBelowAny(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** Without the link that every Debian has, and without a slash at the end. */
export function plainPath(path: string): string {
  const trimmed = path.replace(/(?<=.)\/+$/, '');
  return trimmed.startsWith('/var/run/') ? trimmed.slice('/var'.length) : trimmed;
}
