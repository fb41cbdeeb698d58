// PostgreSQL as a database engine of backups.
import { ConfigError, StepError } from '../../errors.ts';
import { createRedactor } from '../../exec/redact.ts';
import type { Argv } from '../../exec/run.ts';
import type { DatabaseEngine, ServerAbout, ServerPlace } from '../engine.ts';
import { dumpDatabase, dumpGlobals } from './dump.ts';
import { endMarked } from './end.ts';
import { askServer, type Programs, runShort, sessionName } from './programs.ts';
import { openRestorer } from './restore.ts';
import { aboutSql, majorOfNumber, markerPrefix, parseAbout, parseClientVersion } from './sql.ts';
import { refuseName, setUpLike } from './text.ts';

export const postgres: DatabaseEngine = {
  name: 'postgres',
  refuseName,
  setUpLike,
  open: (place) => {
    const programs = openPrograms(place);
    return {
      findRefusal: (how) => findRefusal(programs, how),
      endLeftovers: () => endMarked(programs, markerPrefix),
      describe: () => describeServer(programs),
      dumpDatabase: (database) => dumpDatabase(programs, database),
      dumpGlobals: () => dumpGlobals(programs),
      restorer: openRestorer(programs),
    };
  },
};

const userPattern = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

/** As the official image takes them. Throws ConfigError. */
export function readCredentials(env: readonly string[]): { user: string; password: string } {
  const read = (name: string): string | undefined =>
    env.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  const user = read('POSTGRES_USER') || 'postgres';
  const password = read('POSTGRES_PASSWORD');
  if (!userPattern.test(user)) {
    throw new ConfigError(`cannot dump as ${JSON.stringify(user)}: POSTGRES_USER is no plain name of a role`);
  }
  if (!password) throw new ConfigError('cannot dump: the container has no POSTGRES_PASSWORD');
  return { user, password };
}

function openPrograms(place: ServerPlace): Programs {
  const credentials = readCredentials(place.container.env);
  return { ...place, ...credentials, redact: createRedactor([credentials.password]) };
}

/** What `pg_isready` says by its status; 1 is also the engine's, where the container has just ended. */
const refusals: Readonly<Record<number, string>> = {
  1: 'it starts up, shuts down or has ended',
  2: 'it does not answer',
};

/** While the official image sets a server up, it listens on its socket alone, and is started anew afterwards. */
async function findRefusal(
  programs: Programs,
  { isNew }: { isNew: boolean } = { isNew: false },
): Promise<string | undefined> {
  const argv: Argv = ['pg_isready', '--quiet', ...(isNew ? ['--host=127.0.0.1'] : [])];
  const { status } = await runShort(programs, argv, { okStatuses: [0, 1, 2] });
  return refusals[status];
}

async function describeServer(programs: Programs): Promise<ServerAbout> {
  const lines = await askServer(programs, aboutSql, { name: sessionName });
  const about = parseAbout(lines);
  const { stdout } = await runShort(programs, ['pg_dump', '--version']);
  requireClient(stdout, about);
  return about;
}

/** Throws StepError. */
function requireClient(
  text: string,
  { version, versionNumber }: { version: string; versionNumber: number },
): void {
  const client = parseClientVersion(text);
  if (client === undefined) {
    throw new StepError(
      `cannot dump: ${JSON.stringify(text.trim().slice(0, 80))} tells no version of pg_dump`,
    );
  }
  if (client.major < majorOfNumber(versionNumber)) {
    throw new StepError(
      `cannot dump: pg_dump in the container is ${client.version}, older than the server, which is ${version}`,
      { code: 'version' },
    );
  }
}
