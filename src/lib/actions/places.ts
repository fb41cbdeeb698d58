// Where a node keeps its actions, below the state directory.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';

export type ActionPlaces = {
  /** The source's mirror. */
  staging: string;
  /** Files to be performed; each is moved out, whatever it is. */
  inbox: string;
  /** When each of them came there. */
  arrivals: string;
  /** Results until they have been sent. */
  outbox: string;
  /** What was refused, for people. */
  quarantine: string;
  /** What has been begun, for ever; and what was refused. */
  markers: string;
  /** Names of what was refused. */
  refusals: string;
  /** The time in the name of the last result. */
  eventClock: string;
  /** What has ended last. */
  lastEnd: string;
};

export function actionPlaces({ stateDir }: Pick<Paths, 'stateDir'>): ActionPlaces {
  const root = join(stateDir, 'actions');
  return {
    staging: join(root, 'staging'),
    inbox: join(root, 'inbox'),
    arrivals: join(root, 'arrivals'),
    outbox: join(root, 'outbox'),
    quarantine: join(root, 'quarantine'),
    markers: join(root, 'processed-deploy-actions'),
    refusals: join(root, 'refused-deploy-actions'),
    eventClock: join(root, 'event-clock.json'),
    lastEnd: join(root, 'last-end.json'),
  };
}
