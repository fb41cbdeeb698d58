// What a backup costs beside its pg_dump: time, and memory that does not grow with the database.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { startDatabase, type TestDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { readSlowness } from '../../support/machine-speed.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { startProcess } from '../../support/programs.ts';
import { tellFigure } from '../../support/system.ts';
import { makeTempDir } from '../../support/temp.ts';

/** Of plain SQL. `REEVE_BACKUP_MB=2000` measures what takes minutes. */
const largeMb = Number(process.env['REEVE_BACKUP_MB'] ?? 200);
const smallMb = 10;
/** The middle one of them counts. */
const rounds = 3;

beforeAll(() => buildPostgresImage(engineSocket()), imageMs);

// Other work on the machine spoils a measurement now and then.
it('costs little more than pg_dump alone, and as much memory for a large database as for a small one', {
  timeout: 300_000 + largeMb * 3000,
  retry: 2,
}, async () => {
  const node = makeNode({ project: 'figures' });
  const db = await startDatabase(node, {
    cpu: 2048,
    database: { engine: 'postgres', version: '15', databases: ['app'] },
  });
  await db.psql('CREATE DATABASE app');
  await db.psql('CREATE TABLE t (id bigint, a text, b text)', 'app');
  await fill(db, smallMb);
  const small = await backUp(node);
  await fill(db, largeMb - smallMb);
  // In turn, so that whatever else the machine does meets both.
  const ratios: number[] = [];
  const peaks: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const aloneMs = await dumpAlone(node, db);
    const { dumpMs, peakMb } = await backUp(node);
    ratios.push(dumpMs / aloneMs);
    peaks.push(peakMb);
    tellFigure(`backup of ${largeMb} MB: ${dumpMs} ms, pg_dump alone ${aloneMs} ms, memory ${peakMb} MB`);
  }
  const ratio = ratios.sort((a, b) => a - b)[(rounds - 1) / 2] ?? Number.NaN;
  const peakMb = Math.max(...peaks);
  tellFigure(
    `backup / pg_dump ${ratio.toFixed(2)}; memory ${small.peakMb} MB for ${smallMb} MB, ${peakMb} MB for ${largeMb} MB`,
  );
  // What is ours of it counts by the machine.
  expect(ratio).toBeLessThanOrEqual(1 + 0.15 * (await readSlowness()));
  expect(peakMb).toBeLessThan(120);
  expect(peakMb - small.peakMb).toBeLessThan(25);
});

/** Text that compresses about as well as people's data does. */
async function fill(db: TestDatabase, mb: number): Promise<void> {
  const row = 'i, md5(i::text) || md5((i + 1)::text), repeat(md5((i % 1000)::text), 4)';
  await db.psql(`INSERT INTO t SELECT ${row} FROM generate_series(1, ${mb * 5000}) AS i`, 'app');
}

type Cost = { dumpMs: number; peakMb: number };

async function backUp(node: TestNode): Promise<Cost> {
  const running = node.start(['backup', '--now', '--json']);
  let peakMb = 0;
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, readPeakMb(running.pid));
  }, 20);
  const end = await running.end.finally(() => clearInterval(timer));
  expect(end.status, end.stdout + end.stderr).toBe(0);
  const { services } = end.json() as unknown as { services: { databases: { durationMs: number }[] }[] };
  return { dumpMs: services[0]?.databases[0]?.durationMs ?? Number.NaN, peakMb };
}

/** The kernel's own account of the most there was; 0 once the process has gone. */
function readPeakMb(pid: number): number {
  try {
    const kb = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Math.round(Number(kb ?? 0) / 1024);
  } catch {
    return 0;
  }
}

/** `pg_dump -Z 6` into a file here, as a person would have it. */
async function dumpAlone(node: TestNode, db: TestDatabase): Promise<number> {
  const file = join(makeTempDir(), 'dump.sql.gz');
  const dump = `exec docker -H unix://${node.socket} exec ${db.container} pg_dump -U postgres -Z 6 app >${file}`;
  const startedAt = performance.now();
  const end = await startProcess('sh', ['-c', dump]).ended;
  expect(end.status, end.stderr).toBe(0);
  return Math.round(performance.now() - startedAt);
}
