// What a run of `backup` removes behind itself, on a real PostgreSQL.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { stampOf } from '../../../src/lib/backup/names.ts';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { writeSet } from '../../support/backup-files.ts';
import { daysAgo } from '../../support/backup-places.ts';
import { listBackups, startDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

beforeAll(() => buildPostgresImage(engineSocket()), imageMs);

/** `DATABASE DAYS-AGO` of the dumps that were there before, oldest first. */
function oldDumps(node: TestNode): string[] {
  const ages = new Map([20, 15, 10].map((days) => [stampOf(daysAgo(days)), days]));
  return listBackups(node).flatMap((path) => {
    const [, database, stamp] = /^default\/\w+\/db\/([a-z]+)\/(.+)\.sql\.gz$/.exec(path) ?? [];
    const age = ages.get(stamp ?? '');
    return age === undefined ? [] : [`${database} ${age}`];
  });
}

describe('a backup', () => {
  it('removes old dumps of what it has dumped, and of nothing else (L89, O1, O23, R53)', async () => {
    const node = makeNode({ project: 'pruned' });
    const databases = ['postgres', 'missing'];
    await startDatabase(node, { database: { engine: 'postgres', version: '15', databases } });
    const first = await node.reeve('backup', '--now');
    expect(first).toMatchObject({ status: 1 });
    const store = openFileStore(join(node.stateDir, 'backups'));
    for (const days of [20, 15, 10])
      await writeSet(store, 'default/pruned/db/', {
        at: daysAgo(days),
        databases: ['postgres', 'missing', 'gone'],
      });

    // A prune that fails is told, and is no failure of the backup.
    writeFileSync(join(node.stateDir, 'backups/default/pruned/db/postgres/2999-01-01T00-00-00Z.sql.gz'), 'x');
    await writeSet(store, 'default/pruned/db/', {
      at: new Date('2999-01-01T00:00:00Z'),
      databases: ['postgres'],
    });
    const warned = await node.reeve('backup', '--now');
    expect(warned.stderr).toContain('old backups of pruned/db stay: ages cannot be told');
    expect(warned.stdout).toMatch(/"postgres": \d+(\.\d)? k?B in /);
    expect(oldDumps(node)).toHaveLength(9);
    for (const path of listBackups(node).filter((name) => name.includes('2999-')))
      rmSync(join(node.stateDir, 'backups', path));

    const end = await node.reeve('backup', '--now');
    expect(end.stdout).toContain('"missing": failed: there is no such database');
    expect(oldDumps(node)).toEqual([
      ...[20, 15, 10].map((days) => `gone ${days}`),
      ...[20, 15, 10].map((days) => `missing ${days}`),
      'postgres 10',
    ]);
    expect(end.stderr).toContain('removed 2 old dumps of pruned/db');

    // A prune that went well says nothing of the backups: the last of them has failed.
    expect(await node.reeve('backup', 'prune')).toMatchObject({ status: 0 });
    const status = await node.reeve('status');
    expect(status).toMatchObject({ status: 1 });
    expect(status.stdout).toMatch(/"missing" +failing +never .*there is no such database/);
  });

  it('removes nothing where another service has its backups in the same place (O28)', async () => {
    const node = makeNode({ project: 'shared' });
    const own = { database: { engine: 'postgres', version: '15', databases: ['postgres'] } };
    await startDatabase(node, own);
    expect(await node.reeve('backup', '--now')).toMatchObject({ status: 0 });
    const store = openFileStore(join(node.stateDir, 'backups'));
    for (const days of [20, 15, 10])
      await writeSet(store, 'default/shared/db/', { at: daysAgo(days), databases: ['postgres'] });
    // As the CLI of launch-pad would write it: deploy refuses it.
    const services = node.desired().services as DesiredService[];
    node.writeDesired([...services, ...services.map((service) => ({ ...service, service: 'other' }))]);
    const shared = await node.reeve('backup', '--now', '--service', 'shared/db');
    expect(shared).toMatchObject({ status: 0 });
    expect(shared.stderr).toContain(
      'old backups of shared/db stay: its backups are among those of shared/other',
    );
    expect(oldDumps(node)).toEqual(['postgres 20', 'postgres 15', 'postgres 10']);
    node.writeDesired(services);
    expect(await node.reeve('backup', '--now')).toMatchObject({ status: 0 });
    expect(oldDumps(node)).toEqual(['postgres 10']);
  });
});
