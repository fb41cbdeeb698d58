// What the section `actions` says to its services: which of them there are, and what they reach. Pure.
import { eventsRoot } from '../deploy-runner/layout.ts';
import { kindOfPlace } from '../rsync/place.ts';
import type { Opening } from './openings.ts';
import type { UnitsConfig } from './render.ts';
import type { ServiceUnit } from './units.ts';

/** `node`: it performs actions. `control`: it has the tree of all of them. */
export function hasSide({ actions }: Pick<UnitsConfig, 'actions'>, side: 'node' | 'control'): boolean {
  if (actions === undefined) return false;
  return side === 'node' ? actions.node !== '' : actions.root !== undefined;
}

/** Beside what every service reaches. */
export function findActionsOpenings(
  { section, side }: ServiceUnit,
  { actions }: UnitsConfig,
): Omit<Opening, 'zone'>[] {
  if (section !== 'actions' || actions === undefined) return [];
  if (side === 'control') {
    if (actions.root === undefined) return [];
    return [
      { why: 'actions.root', path: actions.root, write: true },
      { why: 'actions.root: events', path: eventsRoot(actions.root), write: false },
    ];
  }
  const places = [
    { why: 'actions.pull', path: actions.pull, write: false },
    // A directory a day is made below the first part of its path.
    { why: 'actions.push', path: actions.push.split('{date}', 1)[0] ?? '', write: true },
  ];
  return places.filter(({ path }) => path.startsWith('/') && kindOfPlace(path) === 'local');
}
