// What a dump is taken from ends under it: that is told in words, and the next run is as good as ever.
import { beforeAll, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import {
  findRemains,
  holdTable,
  nothingLeft,
  startDatabase,
  type TestDatabase,
  waitForDatabase,
  waitingSql,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();

describe('a dump that is under way', () => {
  let node: TestNode;
  let db: TestDatabase;

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ project: 'ended', onTestFinished: whenDone });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE shop');
    await db.psql('CREATE TABLE item AS SELECT 1 AS n', 'shop');
  }, imageMs);

  /** It waits for a table that is locked when this gives it. */
  async function startDump() {
    await holdTable(db, { database: 'shop', table: 'item' });
    const run = node.start(['backup', '--now']);
    await expect.poll(() => db.psql(waitingSql), { timeout: 30_000 }).not.toBe('0');
    return run;
  }

  async function expectRecovery(): Promise<void> {
    await waitForDatabase(db);
    const next = await node.reeve('backup', '--now');
    expect(next.status, next.stderr).toBe(0);
    expect(await findRemains(node, db)).toEqual(nothingLeft);
  }

  it.each([
    ['is killed', 'start', ['kill']],
    ['is removed', 'reconcile', ['rm', '-f']],
  ])('has nothing left where its container %s, and says that it has ended (O7)', async (_, how, argv) => {
    const run = await startDump();
    await askDocker(node.socket, [...argv, db.container]);
    const { status, stdout, stderr } = await run.end;
    expect(status).toBe(1);
    expect(stdout).toContain('its container has ended');
    expect(`${stdout}${stderr}`).not.toMatch(/orphan-possible|docker --host/);
    if (how === 'start') await askDocker(node.socket, ['start', db.container]);
    else expect((await node.reeve('reconcile')).status).toBe(0);
    await expectRecovery();
  });

  it('has nothing left where its server crashes and comes back (O7)', async () => {
    const run = await startDump();
    await db.exec(
      'sh',
      '-c',
      // Not what only names it among its arguments, as this shell does.
      'kill -9 "$(grep -ls "^postgres: .*checkpointer" /proc/[0-9]*/cmdline | head -n1 | cut -d/ -f3)"',
    );
    const { status, stdout, stderr } = await run.end;
    expect(status).toBe(1);
    expect(stdout).toContain('connection to server was lost');
    expect(`${stdout}${stderr}`).not.toContain('orphan-possible');
    await expectRecovery();
  });
});
