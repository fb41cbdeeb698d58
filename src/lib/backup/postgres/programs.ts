// PostgreSQL's own programs inside the container. What they are to connect to and as whom is in their environment, where any
// name is a name: in an argument, `-Fc` would be an option and `a=b` a connection string.
import { type ContainerProgram, runInContainer } from '../../docker/exec.ts';
import { CommandError } from '../../errors.ts';
import type { Redact } from '../../exec/redact.ts';
import type { Argv, ProgramResult } from '../../exec/run.ts';
import type { ServerPlace } from '../engine.ts';

export type Programs = ServerPlace & {
  user: string;
  password: string;
  redact: Redact;
};

/** Of sessions that end by themselves. */
export const sessionName = 'reeve';

/** What a session gives up a connection attempt after, in seconds. */
const connectSeconds = '20';

/**
 * Whatever a database or a role sets for its sessions: with any schema on the path, a function that fits a call of ours better than
 * the server's own, as `count(boolean)`, would be called as a superuser.
 */
const sessionOptions = '-c search_path= -c statement_timeout=0 -c default_transaction_read_only=off';
/** The same but for the path: a dump names its own, and finds nothing but what it makes. */
export const loadOptions = '-c statement_timeout=0 -c default_transaction_read_only=off';

/** `name` tells sessions apart in the server. Variables that the container may have of its own are overridden. */
export function buildProgram(
  { socket, container, user, password }: Programs,
  argv: Argv,
  { database, name, options = sessionOptions }: { database: string; name: string; options?: string },
): ContainerProgram {
  return {
    socket,
    containerId: container.id,
    argv,
    env: {
      PGUSER: user,
      PGPASSWORD: password,
      PGDATABASE: database,
      PGAPPNAME: name,
      PGCONNECT_TIMEOUT: connectSeconds,
      PGOPTIONS: options,
      PGCLIENTENCODING: '',
    },
  };
}

/** Without the user's own start-up file and without frills: a line a row, fields split by `|`. */
export const psqlArgv: Argv = [
  ...['psql', '--no-psqlrc', '--quiet', '--no-align', '--tuples-only', '--no-password'],
  ...['--set', 'ON_ERROR_STOP=1', '--file', '-'],
] as unknown as Argv;

/** psql's status where there is no connection. */
export const notConnected = 2;

export type Question = {
  /** Of the session. */
  name: string;
  /** Of psql: `:'name'` in a statement is the value as a text, `:"name"` as an identifier. */
  variables?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  signal?: AbortSignal;
};

/** The lines of the answer to a question that one database is asked. Throws CommandError. */
export async function askDatabase(
  programs: Programs,
  sql: string,
  { database, ...question }: Question & { database: string },
): Promise<string[]> {
  const { name, variables = {}, timeoutMs = programs.limits.askMs, signal } = question;
  const set = Object.entries(variables).map(([variable, value]) => `--set=${variable}=${value}`);
  const program = buildProgram(programs, [...psqlArgv, ...set], { database, name });
  const how = { ...shortRun(programs, signal), timeoutMs, input: sql };
  const { stdout } = await runInContainer(program, how);
  return stdout.split('\n').filter((line) => line !== '');
}

/**
 * The same of a question that any database answers: `postgres`, which may have been dropped, or the template. `beside`: asked in
 * another database than this.
 */
export async function askServer(
  programs: Programs,
  sql: string,
  { beside, ...question }: Question & { beside?: string },
): Promise<string[]> {
  const last = { ...question, database: 'template1' };
  if (beside === 'postgres') return await askDatabase(programs, sql, last);
  try {
    return await askDatabase(programs, sql, { ...question, database: 'postgres' });
  } catch (error) {
    if (!(error instanceof CommandError) || error.status !== notConnected) throw error;
    return await askDatabase(programs, sql, last).catch(() => {
      throw error;
    });
  }
}

/** A program that asks for no connection, or tells by its status whether there is one. */
export async function runShort(
  programs: Programs,
  argv: Argv,
  { okStatuses = [0], signal }: { okStatuses?: readonly number[]; signal?: AbortSignal } = {},
): Promise<ProgramResult> {
  const program = buildProgram(programs, argv, { database: 'postgres', name: sessionName });
  return await runInContainer(program, { ...shortRun(programs, signal), okStatuses });
}

function shortRun({ limits, signal, redact }: Programs, other?: AbortSignal) {
  const maxOutputBytes = 16 * 1024 * 1024;
  return { timeoutMs: limits.askMs, maxOutputBytes, signal: other ?? signal, redact };
}
