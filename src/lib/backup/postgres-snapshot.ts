// A session that holds a snapshot open for as long as a dump takes, and counts rows in it meanwhile.
import { PassThrough } from 'node:stream';
import { streamFromContainer } from '../docker/exec.ts';
import { StepError } from '../errors.ts';
import type { TableRows } from './manifest.ts';
import { buildProgram, type Programs, psqlArgv } from './postgres-programs.ts';
import { parseRows, snapshotSql } from './postgres-sql.ts';

export type Snapshot = {
  /** As `pg_dump --snapshot` takes it. Rejects where the session could not begin. */
  readonly id: Promise<string>;
  /** Rejects as soon as the session fails. */
  readonly counts: Promise<readonly TableRows[]>;
  /** Ends the session and waits for it. */
  close(): Promise<void>;
};

export function openSnapshot(
  programs: Programs,
  how: { database: string; name: string; signal: AbortSignal },
): Snapshot {
  const { limits, redact } = programs;
  const input = new PassThrough();
  const lines = readLines(
    streamFromContainer(buildProgram(programs, psqlArgv, how), {
      ...{ input, redact, signal: how.signal },
      timeoutMs: limits.dumpMs,
    }),
  );
  const id = createPending<string>();
  const counts = createPending<readonly TableRows[]>();
  const session = followSession(lines, id, counts).catch((error: unknown) => {
    id.reject(error);
    counts.reject(error);
  });
  input.write(snapshotSql(limits));
  return {
    id: id.promise,
    counts: counts.promise,
    close: async () => {
      input.end();
      await session;
    },
  };
}

type Pending<Value> = {
  promise: Promise<Value>;
  resolve(value: Value): void;
  reject(error: unknown): void;
};

function createPending<Value>(): Pending<Value> {
  let resolve: (value: Value) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<Value>((...both) => {
    [resolve, reject] = both;
  });
  // Whoever asks for it is told of a failure; nobody may.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** To the end of the session, which is that of its input. */
async function followSession(
  lines: AsyncIterable<string>,
  id: Pending<string>,
  counts: Pending<readonly TableRows[]>,
): Promise<void> {
  const tables: TableRows[] = [];
  for await (const line of lines) {
    const [kind, value = ''] = line.split('|');
    if (kind === 'snapshot') id.resolve(value);
    if (kind === 'counted') counts.resolve(tables);
    const rows = parseRows(line);
    if (rows !== undefined) tables.push(rows);
  }
  throw new StepError('cannot count rows: the session ended early', { code: 'snapshot' });
}

async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const parts = (rest + Buffer.from(chunk).toString('latin1')).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}
