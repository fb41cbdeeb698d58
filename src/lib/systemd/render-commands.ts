// What the section `commands` says to the services of commands: what they reach. Pure.
import { dirname } from 'node:path';
import type { Opening } from './openings.ts';
import type { UnitsConfig } from './render.ts';
import type { ServiceUnit } from './units.ts';

/** Beside what every service reaches. */
export function findCommandsOpenings(
  { section }: ServiceUnit,
  { commands }: UnitsConfig,
): Omit<Opening, 'zone'>[] {
  if (section !== 'commands' || commands?.tls === undefined) return [];
  const { certPath, keyPath, caPath } = commands.tls;
  const files = [certPath, keyPath, ...(caPath === undefined ? [] : [caPath])];
  return files.map((path) => ({ why: 'commands.tls', path: dirname(path), write: false }));
}
