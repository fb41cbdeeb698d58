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
  let attempt = beginAttempt(programs, { database, name });
  async function* read(): AsyncGenerator<Uint8Array> {
    const waits = lockWaits.map((share) => Math.round(programs.limits.lockMs * share));
    for (const [tried, lockMs] of waits.entries()) {
      const isLast = tried === waits.length - 1;
      const failure = yield* readDump(programs, { attempt, lockMs, isLast });
      if (failure === undefined) return;
      await attempt.snapshot.close();
      attempt = beginAttempt(programs, { database, name });
    }
  }
  return {
    chunks: read(),
    countRows: () => attempt.snapshot.counts,
    close: async (how) => {
      if (how === 'failed') attempt.end.abort();
      await attempt.snapshot.close();
      if (how === 'failed') await endMarked(programs, name);
    },
  };
}

/**
 * Parts of the limit for locks. Who asks for a whole table after the snapshot's session has locked it and before the dump has
 * waits for the one, and the dump for them: giving up soon lets them through, and the dump begins anew. The waits grow as
 * `--lock-wait-timeout` limits reading the catalog, too.
 */
const lockWaits = [1 / 12, 1 / 6, 1 / 3, 1];

type Attempt = {
  database: string;
  name: string;
  snapshot: Snapshot;
  end: AbortController;
  signal: AbortSignal;
};

function beginAttempt(programs: Programs, about: { database: string; name: string }): Attempt {
  const end = new AbortController();
  const signal = AbortSignal.any([programs.signal, end.signal]);
  const snapshot = openSnapshot(programs, { ...about, signal });
  // A dump whose rows nobody counts is over.
  snapshot.counts.catch((error: unknown) => end.abort(error));
  return { ...about, snapshot, end, signal };
}

type DumpTry = { attempt: Attempt; lockMs: number; isLast: boolean };

/** To the end of the dump; returns what it failed with where it has only waited for locks, and may be tried again. */
async function* readDump(
  programs: Programs,
  { attempt, lockMs, isLast }: DumpTry,
): AsyncGenerator<Uint8Array, unknown> {
  const { limits, redact } = programs;
  const { database, name, snapshot, end, signal } = attempt;
  const { id, encoding } = await snapshot.begun;
  const argv: Argv = [
    'pg_dump',
    ...['--compress=6', '--no-password'],
    `--lock-wait-timeout=${lockMs}`,
    // Its own: in one that a server, a role or a variable sets for its clients some characters may have no place.
    `--encoding=${encoding}`,
    `--snapshot=${id}`,
  ];
  const chunks = streamFromContainer(buildProgram(programs, argv, { database, name }), {
    ...{ redact, signal },
    timeoutMs: limits.dumpMs,
  });
  const startedAt = performance.now();
  let isBegun = false;
  try {
    for await (const chunk of withIdleLimit(chunks, { idleMs: limits.idleMs, end })) {
      isBegun = true;
      yield chunk;
    }
    return undefined;
  } catch (error) {
    // Not by its message, which is in the server's language.
    const hasWaited = performance.now() - startedAt >= lockMs;
    if (isBegun || isLast || !hasWaited || signal.aborted) throw error;
    return error;
  }
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
