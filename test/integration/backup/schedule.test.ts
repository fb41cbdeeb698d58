// When a backup is made: by its own schedule, only while its database takes connections, and once for each fire.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import {
  lastFire,
  lastStamp,
  listBackups,
  makeDue,
  startDatabase,
  type TestDatabase,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();

type State = { anchors: Record<string, number>; services: Record<string, { lastError: string | null }> };

describe('a backup by schedule', () => {
  let node: TestNode;
  let db: TestDatabase;
  const anchor = 'backup:timed/db';
  const state = (): State => node.state('backups.json') as State;
  const dump = `default/timed/db/app/${lastStamp}.sql.gz`;
  const wake = (): string => join(node.root, 'run/wake/backup');

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ project: 'timed', onTestFinished: whenDone });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE app');
  }, imageMs);
  beforeEach(() => askDocker(engineSocket(), ['start', db.container]).then(waitReady));

  async function waitReady(): Promise<void> {
    await expect
      .poll(() => db.exec('pg_isready', '-q').then(() => 'ready', String), { timeout: 60_000 })
      .toBe('ready');
  }

  it('begins when it is first seen, and makes nothing of the past (L72, L74)', async () => {
    const before = Date.now();
    const end = await node.reeve('backup', '--json');
    expect([end.status, end.json().outcome]).toEqual([0, 'nothing-to-do']);
    expect(state().anchors[anchor]).toBeGreaterThanOrEqual(before);
    expect(state().anchors[anchor]).toBeLessThanOrEqual(Date.now());
    expect(listBackups(node)).toEqual([]);
    const again = await node.reeve('backup');
    expect(again.stdout).toMatch(/^nothing is due\ntimed\/db: next \d{4}-01-01T00:00:00\.000Z\n$/);
  });

  it('is put off while its database is down or refuses, and is due still (L75, L76)', async () => {
    makeDue(node);
    const before = state().anchors[anchor];
    await askDocker(engineSocket(), ['stop', db.container]);
    const stopped = await node.reeve('backup');
    expect([stopped.status, stopped.stdout]).toEqual([0, 'timed/db: deferred: its container is exited\n']);
    await askDocker(engineSocket(), ['start', db.container]);
    await waitReady();
    // It runs, and takes no connections.
    await db.exec(
      'sh',
      '-c',
      'kill -STOP 1; kill -STOP $(head -n 1 /var/lib/postgresql/data/postmaster.pid)',
    );
    const refusing = await node.reeve('backup', '--json');
    await db.exec(
      'sh',
      '-c',
      'kill -CONT $(head -n 1 /var/lib/postgresql/data/postmaster.pid); kill -CONT 1',
    );
    expect([refusing.status, refusing.json().outcome]).toEqual([0, 'deferred']);
    expect(state().anchors[anchor]).toBe(before);
    expect(listBackups(node)).toEqual([]);
  });

  it('is named after the fire, which is recorded afterwards, and comes once (L72, L87, L90, L92)', async () => {
    makeDue(node);
    const end = await node.reeve('backup', '--json');
    expect([end.status, end.json().outcome]).toEqual([0, 'done']);
    expect(listBackups(node)).toContain(dump);
    expect(state().anchors).toEqual({ [anchor]: lastFire.getTime() });
    expect((await node.reeve('backup', '--json')).json().outcome).toBe('nothing-to-do');
  });

  it('made again for the same fire takes the place of the first (L91)', async () => {
    makeDue(node);
    const before = listBackups(node);
    await db.psql('CREATE TABLE later (x int)', 'app');
    expect((await node.reeve('backup')).status).toBe(0);
    expect(listBackups(node)).toEqual(before);
  });

  it('whose databases fail moves on, with the reason in lastError (L80, L93, L94)', async () => {
    makeDue(node);
    await db.exec('chmod', '-x', '/usr/lib/postgresql/15/bin/pg_dump');
    const end = await node.reeve('backup');
    await db.exec('chmod', '+x', '/usr/lib/postgresql/15/bin/pg_dump');
    expect(end.status).toBe(1);
    expect(state().anchors).toEqual({ [anchor]: lastFire.getTime() });
    expect(state().services['timed/db']?.lastError).toContain('pg_dump');
    expect((await node.reeve('backup', '--json')).json().outcome).toBe('nothing-to-do');
    expect((await node.reeve('reconcile')).status).toBe(0);
    expect(node.status().services[0]?.backup?.lastError).toContain('pg_dump');
    expect(node.status().services[0]?.state).toBe('running');
  });

  it('of this moment leaves the schedule alone', async () => {
    makeDue(node);
    const before = state().anchors;
    expect((await node.reeve('backup', '--now', '--service', 'timed/db')).status).toBe(0);
    expect(state().anchors).toEqual(before);
    const wrong = await node.reeve('backup', '--now', '--service', 'timed/web');
    expect([wrong.status, wrong.stderr]).toEqual([
      65,
      expect.stringContaining('it is not desired on this node'),
    ]);
  });

  it('that is due is woken by a tick, once (L76)', async () => {
    makeDue(node);
    await node.reeve('reconcile');
    expect(existsSync(wake())).toBe(true);
    expect((await node.reeve('backup')).status).toBe(0);
    const { unlinkSync } = await import('node:fs');
    unlinkSync(wake());
    await node.reeve('reconcile');
    expect(existsSync(wake())).toBe(false);
  });

  it('goes on from the fires that launch-pad’s agent has left (L72, L164)', async () => {
    node.writeState('backups.json', { version: 1, anchors: {}, services: {} });
    node.writeState('cron.json', { version: 1, fires: { [anchor]: lastFire.getTime() - 60_000 } });
    const end = await node.reeve('backup', '--json');
    expect([end.status, end.json().outcome]).toEqual([0, 'done']);
    expect(state().anchors).toEqual({ [anchor]: lastFire.getTime() });
  });

  it('has an anchor of its own beside a scheduled service of its name (L73)', async () => {
    node.writeState('cron.json', { version: 1, fires: { 'timed/db': lastFire.getTime() - 60_000 } });
    node.writeState('backups.json', { version: 1, anchors: {}, services: {} });
    const end = await node.reeve('backup', '--json');
    expect(end.json().outcome).toBe('nothing-to-do');
    expect(Object.keys(state().anchors)).toEqual([anchor]);
  });

  it('waits for whoever replaces its container, and keeps it meanwhile', async () => {
    makeDue(node);
    const holder = node.start(['lock', 'service@timed@db', '--', 'sh', '-c', 'echo held; exec sleep 60']);
    await holder.waitFor('held');
    const end = await node.reeve('backup', '--json');
    holder.child.kill('SIGTERM');
    await holder.end;
    expect([end.status, end.json().outcome]).toEqual([0, 'deferred']);
    expect(end.json()['deferred']).toEqual([
      {
        project: 'timed',
        service: 'db',
        reason: expect.stringContaining('lock service@timed@db is held by'),
      },
    ]);
    expect((await node.reeve('backup', '--json')).json().outcome).toBe('done');
  });

  it('of a service that is held is put off', async () => {
    makeDue(node);
    await node.reeve('hold', 'timed/db', '--for', '1h', '--reason', 'moving');
    const held = await node.reeve('backup');
    expect([held.status, held.stdout]).toEqual([0, 'timed/db: deferred: it is held: moving\n']);
    await node.reeve('hold', 'timed/db', '--end');
    expect((await node.reeve('backup', '--json')).json().outcome).toBe('done');
  });

  it('goes on from what the store has where its file was lost', async () => {
    node.writeState('backups.json', '\0\0\0');
    node.writeState('backups.json.previous', '{');
    const end = await node.reeve('backup', '--json');
    expect([end.status, end.json().outcome]).toEqual([0, 'nothing-to-do']);
    // The newest there is of this moment, not of the schedule.
    expect(state().anchors[anchor]).toBeGreaterThan(lastFire.getTime());
    expect(Object.keys(state().services)).toEqual(['timed/db']);
  });
});
