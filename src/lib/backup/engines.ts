// The kinds of database server that can be backed up, by the name that a service's `database.engine` has.
import type { DatabaseEngine } from './engine.ts';
import { postgres } from './postgres/engine.ts';

const engines: Readonly<Record<'postgres', DatabaseEngine>> = { postgres };

export function findDatabaseEngine(name: keyof typeof engines): DatabaseEngine {
  return engines[name];
}
