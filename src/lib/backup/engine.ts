// What backups ask of a kind of database server, small enough that another kind is one more file. A server runs in a
// container, and its own programs are run in there: so that a client is never older than its server.
import type { ContainerDetails } from '../docker/types.ts';
import type { TableRows } from './manifest.ts';

/** Milliseconds. */
export type DumpLimits = {
  /** Nothing is heard of a dump for so long: it hangs. */
  idleMs: number;
  /** All of one dump. */
  dumpMs: number;
  /** A short program: a question, a version. */
  askMs: number;
  /** A dump waits so long for a table that somebody else has locked. */
  lockMs: number;
};

export const defaultLimits: DumpLimits = {
  idleMs: 10 * 60_000,
  dumpMs: 6 * 60 * 60_000,
  askMs: 60_000,
  lockMs: 60_000,
};

export type ServerPlace = {
  /** Path of the engine's socket. */
  socket: string;
  container: Pick<ContainerDetails, 'id' | 'env'>;
  runId: string;
  /** Ends what is under way; what has to be ended in the container then still is. */
  signal: AbortSignal;
  limits: DumpLimits;
};

export type DatabaseEngine = {
  readonly name: string;
  /** Runs nothing yet. Throws ConfigError where the container's environment holds no credentials. */
  open(place: ServerPlace): DatabaseServer;
  /** Why nothing can be restored into a database of this name; undefined where something can. */
  refuseName(name: string): string | undefined;
  /** Variables for another server that is set up as the one with these, and has a password of its own. */
  setUpLike(env: readonly string[]): Readonly<Record<string, string>>;
};

export type DatabaseServer = {
  /** Undefined if it takes connections; else why it does not. `isNew`: it may not have been set up to its end. */
  findRefusal(how?: { isNew: boolean }): Promise<string | undefined>;
  /**
   * Ends what killed runs have left in the container and in the server. Throws OrphanError where it cannot be told that it is
   * gone. Assumes the lock `backup`.
   */
  endLeftovers(): Promise<void>;
  /** Throws StepError, naming both versions, where its programs cannot dump it. */
  describe(): Promise<ServerAbout>;
  /** Of one snapshot. The stream is gzip, and ends only if the program has ended well. */
  dumpDatabase(database: string): DatabaseDump;
  /** Roles and tablespaces, as plain text. */
  dumpGlobals(): GlobalsDump;
  readonly restorer: DatabaseRestorer;
};

/**
 * Restores into databases of its own alone, which get another's name at the end. Assumes the lock `backup`; every failure is
 * thrown in the server's words.
 */
export type DatabaseRestorer = {
  /** Removes what killed restores have left. */
  dropLeftovers(): Promise<void>;
  /** Undefined where there is none of this name. */
  findDatabase(name: string): Promise<FoundTarget | undefined>;
  /** Whether the last kilobyte of a text is how a whole dump ends. */
  isEnd(text: string): boolean;
  /** Empty, of this run, and as `like` is but for its settings; without it, as the first kilobytes of a dump ask for. Its name. */
  createDatabase(as: { like: string } | { beginning: string }): Promise<string>;
  /** The text of a dump, in one transaction, up to the first error. */
  loadDatabase(name: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;
  countRows(name: string): Promise<readonly TableRows[]>;
  dropDatabase(name: string): Promise<void>;
  /** Gives `from` the name, in the place of the database that has it. Ends the sessions of both. */
  renameDatabase(from: string, to: string, how: { replaces: boolean }): Promise<void>;
  /** Makes the roles that are missing, out of what `dumpGlobals` has written. */
  restoreRoles(globals: string): Promise<{ made: readonly string[]; tablespaces: readonly string[] }>;
  /** Where the server keeps its data; undefined where that cannot be told. */
  findFreeBytes(): Promise<number | undefined>;
  /** Whether its program is kept from running others that a dump names. What a statement can do it does either way. */
  restrictsText(): Promise<boolean>;
};

export type FoundTarget = {
  isEmpty: boolean;
  /** Why nothing can be restored into it. */
  refusal?: string;
};

export type ServerAbout = {
  /** `15.18` */
  version: string;
  databases: readonly FoundDatabase[];
};

export type FoundDatabase = {
  /** Undefined where its bytes are no UTF-8, which no program's environment of ours can hold. */
  name: string | undefined;
  /** For people, whatever the bytes. */
  shown: string;
  sizeBytes: number;
  /** Why it has no data that could be dumped. */
  skip?: string;
  /** Dumped only where it is asked for: the server makes it by itself. */
  isOwn: boolean;
};

export type DatabaseDump = {
  chunks: AsyncIterable<Uint8Array>;
  /** Rows of each table as the dump's snapshot has them. Asked for once the stream has ended. */
  countRows(): Promise<readonly TableRows[]>;
  /** After either end; after a failure it ends what is left. Throws OrphanError where it cannot be told that it is gone. */
  close(how: 'done' | 'failed'): Promise<void>;
};

export type GlobalsDump = {
  chunks: AsyncIterable<Uint8Array>;
  /** Known once the stream has begun. */
  passwords(): 'included' | 'excluded';
  close(how: 'done' | 'failed'): Promise<void>;
};
