// A set whose manifest could not be written: nothing proves its dumps, so that none of them counts as a backup.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { lastStamp, listBackups, makeDue, startDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();
beforeAll(() => buildPostgresImage(engineSocket()), imageMs);

it('dumps whose manifest could not be written have failed, and none of them is a last good one (O21)', async () => {
  const node = makeNode({ project: 'unproven', onTestFinished: whenDone });
  const db = await startDatabase(node);
  await db.psql('CREATE DATABASE app');
  makeDue(node);
  const set = join(node.stateDir, 'backups/default/unproven/db/_sets', lastStamp);
  // A directory in its place: no file can be renamed onto it.
  mkdirSync(join(set, 'manifest.json', 'in-the-way'), { recursive: true });
  const end = await node.reeve('backup');
  expect([end.status, end.stdout]).toEqual([
    1,
    expect.stringMatching(/"app": failed: its manifest: cannot write .*; it has no good backup/),
  ]);
  expect(listBackups(node)).toContain(`default/unproven/db/app/${lastStamp}.sql.gz`);
  expect(node.state('backups.json')).toMatchObject({
    services: {
      'unproven/db': {
        lastSuccessAt: null,
        databases: {
          app: { lastSuccessAt: null, level: null, lastError: expect.stringMatching(/manifest/) },
        },
      },
    },
  });
  const status = await node.reeve('status', '--json');
  expect(status.json()['backups']).toMatchObject({
    'unproven/db': { databases: { app: { state: 'failing' } } },
  });
});
