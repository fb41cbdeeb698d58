// The kinds of database server that can be backed up, by the name that a service's `database.engine` has.
import type { DatabaseEngine, DatabaseServer, ServerPlace } from './engine.ts';
import { postgres } from './postgres/engine.ts';

const engines: Readonly<Record<'postgres', DatabaseEngine>> = { postgres };

/** Throws what the engine's `open` throws. */
export function openDatabaseServer(engine: keyof typeof engines, place: ServerPlace): DatabaseServer {
  return engines[engine].open(place);
}
