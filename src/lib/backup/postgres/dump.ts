// `pg_dump` of one database, in the snapshot of a session that counts its rows; and `pg_dumpall` for what belongs to none.
import { streamFromContainer } from '../../docker/exec.ts';
import type { Argv } from '../../exec/run.ts';
import { withIdleLimit } from '../dump/watch.ts';
import type { DatabaseDump, GlobalsDump } from '../engine.ts';
import { endMarked } from './end.ts';
import { askServer, buildProgram, type Programs } from './programs.ts';
import { openSnapshot, type Snapshot } from './snapshot.ts';
import { canReadPasswordsSql, markerOf } from './sql.ts';

export function dumpDatabase(programs: Programs, database: string): DatabaseDump {
  const name = markerOf(programs.runId);
  const end = new AbortController();
  const signal = AbortSignal.any([programs.signal, end.signal]);
  const snapshot = openSnapshot(programs, { database, name, signal });
  // A dump whose rows nobody counts is over.
  snapshot.counts.catch((error: unknown) => end.abort(error));
  return {
    chunks: readDump(programs, { database, name, snapshot, end, signal }),
    countRows: () => snapshot.counts,
    close: async (how) => {
      if (how === 'failed') end.abort();
      await snapshot.close();
      if (how === 'failed') await endMarked(programs, name);
    },
  };
}

type Dump = {
  database: string;
  name: string;
  snapshot: Snapshot;
  end: AbortController;
  signal: AbortSignal;
};

async function* readDump(programs: Programs, dump: Dump): AsyncGenerator<Uint8Array> {
  const { database, name, snapshot, end, signal } = dump;
  const { limits, redact } = programs;
  const { id, encoding } = await snapshot.begun;
  const argv: Argv = [
    'pg_dump',
    ...['--compress=6', '--no-password'],
    `--lock-wait-timeout=${limits.lockMs}`,
    // Its own: in one that a server, a role or a variable sets for its clients some characters may have no place.
    `--encoding=${encoding}`,
    `--snapshot=${id}`,
  ];
  const chunks = streamFromContainer(buildProgram(programs, argv, { database, name }), {
    ...{ redact, signal },
    timeoutMs: limits.dumpMs,
  });
  yield* withIdleLimit(chunks, { idleMs: limits.idleMs, end });
}

export function dumpGlobals(programs: Programs): GlobalsDump {
  const name = markerOf(programs.runId);
  const end = new AbortController();
  const signal = AbortSignal.any([programs.signal, end.signal]);
  let passwords: 'included' | 'excluded' = 'excluded';
  async function* read(): AsyncGenerator<Uint8Array> {
    const { limits, redact } = programs;
    const [line = ''] = await askServer(programs, canReadPasswordsSql, { name });
    passwords = line.endsWith('|t') ? 'included' : 'excluded';
    const argv: Argv = [
      'pg_dumpall',
      ...['--globals-only', '--no-password'],
      `--lock-wait-timeout=${limits.lockMs}`,
      ...(passwords === 'included' ? [] : ['--no-role-passwords']),
    ];
    const chunks = streamFromContainer(buildProgram(programs, argv, { database: 'postgres', name }), {
      ...{ redact, signal },
      timeoutMs: limits.dumpMs,
    });
    yield* withIdleLimit(chunks, { idleMs: limits.idleMs, end });
  }
  return {
    chunks: read(),
    passwords: () => passwords,
    close: async (how) => {
      end.abort();
      if (how === 'failed') await endMarked(programs, name);
    },
  };
}
