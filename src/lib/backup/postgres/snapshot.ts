// A session that holds a snapshot open for as long as a dump takes, and counts rows in it meanwhile.
import { PassThrough } from 'node:stream';
import { streamFromContainer } from '../../docker/exec.ts';
import { StepError } from '../../errors.ts';
import type { TableRows } from '../manifest.ts';
import { buildProgram, type Programs, psqlArgv } from './programs.ts';
import { parseRows, snapshotSql } from './sql.ts';

type Begun = { id: string; encoding: string };

export type Snapshot = {
  /** As `pg_dump` takes them: `--snapshot`, `--encoding`. Rejects where the session could not begin. */
  readonly begun: Promise<Begun>;
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
  const begun = createPending<Begun>();
  const counts = createPending<readonly TableRows[]>();
  const session = followSession(lines, begun, counts).catch((error: unknown) => {
    begun.reject(error);
    counts.reject(error);
  });
  input.write(snapshotSql(limits));
  return {
    begun: begun.promise,
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
  begun: Pending<Begun>,
  counts: Pending<readonly TableRows[]>,
): Promise<void> {
  const tables: TableRows[] = [];
  for await (const line of lines) {
    const [kind, id = '', encoding = ''] = line.split('|');
    if (kind === 'snapshot') begun.resolve({ id, encoding });
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
