// `backup prune` and `backup list` on real stores: a directory, and a bucket of an emulator with a network in between.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stampOf } from '../../../src/lib/backup/names.ts';
import { writeSet } from '../../support/backup-files.ts';
import { aBucket, aDirectory, daysAgo, desire, keysOf, writeSets } from '../../support/backup-places.ts';
import { aDatabase } from '../../support/builders.ts';
import { type Cloud, startCloud } from '../../support/cloud.ts';
import { type FaultyProxy, startFaultyProxy } from '../../support/faulty-proxy.ts';
import { prefix } from '../../support/inventories.ts';
import type { ReeveEnd } from '../../support/node.ts';
import { refusal } from '../../support/s3-answers.ts';

type Dumps = { key: string; action: string; reasons: string[] }[];
type Pruned = { services: { databases: { name: string; dumps: Dumps }[]; sets: { stamp: string }[] }[] };
const prunedOf = (end: ReeveEnd): Pruned => end.json() as unknown as Pruned;

let cloud: Cloud;
let proxy: FaultyProxy;
beforeAll(async () => {
  cloud = await startCloud({ whenFinished: afterAll });
  Object.assign(process.env, cloud.env);
  proxy = await startFaultyProxy(cloud.endpoint, afterAll);
});
beforeEach(() => proxy.reset());

describe.each([
  ['a directory', aDirectory],
  ['a bucket', () => aBucket(cloud, proxy)],
])('retention in %s', (_, makePlace) => {
  it('does what its dry run has told, once, with reasons and a history (L89, O28)', async () => {
    const place = await makePlace();
    const { node, store } = place;
    desire(place, { retentionDays: 3, retention: { daily: 2, minimum: 2 } });
    for (const days of [12, 9, 5, 2, 1])
      await writeSet(store, prefix, { at: daysAgo(days), databases: days > 10 ? ['app', 'old'] : ['app'] });
    const strangers = ['default/blog/db-2/app/x.sql.gz', `${prefix}notes.txt`, `${prefix}app/latest.sql.gz`];
    for (const key of strangers) await store.put(key, 'not ours');
    const before = await keysOf(place);

    const dry = await node.reeve('backup', 'prune', '--dry-run', '--json');
    expect(dry).toMatchObject({ status: 2 });
    expect(await keysOf(place)).toEqual(before);

    const wet = await node.reeve('backup', 'prune', '--json');
    expect(wet).toMatchObject({ status: 0 });
    expect(prunedOf(wet).services).toEqual(prunedOf(dry).services);
    expect(wet.stderr).toContain('2 unrecognised keys below the prefix of blog/db are left alone');
    const [app, old] = prunedOf(wet).services[0]?.databases ?? [];
    expect(app?.dumps.map(({ action, reasons }) => [action, ...reasons])).toEqual([
      ['keep', 'last good', 'minimum of 2', 'not older than 3 days', expect.stringMatching(/^daily of /)],
      ['keep', 'minimum of 2', 'not older than 3 days', expect.stringMatching(/^daily of /)],
      ['keep', 'the state of 3 days ago'],
      ['remove', 'older than 3 days, and in no tier'],
      ['remove', 'older than 3 days, and in no tier'],
    ]);
    // A database that is gone keeps its last good one.
    expect(old?.dumps.map(({ action }) => action)).toEqual(['keep']);
    const left = await keysOf(place);
    expect(left.filter((key) => key.includes('/app/2'))).toHaveLength(3);
    expect(left).toEqual(expect.arrayContaining(strangers));
    expect(left.filter((key) => key.includes('/_sets/')).map((key) => key.split('/')[4])).toEqual([
      ...Array.from({ length: 3 }, () => expect.any(String)),
      ...[5, 2, 1]
        .flatMap((days) => [stampOf(daysAgo(days)).slice(0, 10), stampOf(daysAgo(days)).slice(0, 10)])
        .map((day) => expect.stringContaining(day)),
    ]);

    const again = await node.reeve('backup', 'prune', '--json');
    expect(again).toMatchObject({ status: 0 });
    expect(again.json().outcome).toBe('nothing-to-do');
    const told = await node.reeve('history', 'blog/db');
    expect(told.stdout.match(/removeDump/g)).toHaveLength(2);
    expect(told.stdout.match(/removeSet/g)).toHaveLength(1);
  });

  it('removes nothing while the last good one is older than its days (O24)', async () => {
    const place = await makePlace();
    desire(place);
    await writeSets(place, [11, 10, 9]);
    await writeSet(place.store, prefix, { at: daysAgo(0), databases: ['app'], isFinished: false });
    const before = await keysOf(place);
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 0 });
    expect(end.stdout).toContain('blog/db "app": nothing is removed: its last good dump is 9d old');
    expect(await keysOf(place)).toEqual(before);
  });

  it('is told by a list: newest first, with age, size, evidence, faults and the sum', async () => {
    const place = await makePlace();
    desire(place);
    const evidence = [{ database: 'app', level: 'broken' as const, error: 'it is cut' }];
    await writeSet(place.store, prefix, { at: daysAgo(3), databases: ['app'], evidence });
    const failures = [{ database: 'logs', error: 'no room' }];
    await writeSet(place.store, prefix, { at: daysAgo(2), databases: ['app'], failures });
    await writeSet(place.store, prefix, { at: daysAgo(1), databases: ['app', 'logs'] });
    const [end, plain] = [
      await place.node.reeve('backup', 'list', '--service', 'blog/db', '--json'),
      await place.node.reeve('backup', 'list'),
    ];
    expect(end).toMatchObject({ status: 0 });
    expect(end.json()).toMatchObject({
      ...{ version: 1, command: 'backup list', outcome: 'done' },
      services: [
        {
          ...{ project: 'blog', service: 'db', error: null, unrecognised: 0 },
          databases: [
            {
              name: 'app',
              dumps: [
                { level: 'readable', fault: null },
                { level: 'readable', fault: null },
                { level: 'broken', fault: 'it is cut' },
              ],
            },
            { name: 'logs', dumps: [{ level: 'readable' }] },
          ],
          sets: [{ faults: [] }, { faults: ['database "logs": no room'] }, { faults: [] }],
        },
      ],
    });
    expect(plain.stdout).toMatch(/^blog\/db in \S+\/default\/blog\/db\/: 4 dumps, \d+ B\n/);
    expect(plain.stdout).toMatch(/"app" +\S+Z +3d \S*.*broken +it is cut/);
    expect(plain.stdout).toContain('database "logs": no room');
  });
});

describe('a store that fails', () => {
  it('in one removal keeps no other from being done, and a key that is gone is done (O34)', async () => {
    const place = await aBucket(cloud, proxy);
    desire(place, { retentionDays: 1 });
    await writeSets(place, [9, 8, 7, 6, 3, 0]);
    const keyOf = (days: number): string => `/app/${stampOf(daysAgo(days)).slice(0, 10)}`;
    proxy.fault = ({ method, path }) => {
      if (method !== 'DELETE') return undefined;
      if (path.includes(keyOf(9))) return refusal(404, 'NoSuchKey');
      return path.includes(keyOf(7)) ? refusal(500, 'InternalError') : undefined;
    };
    const end = await place.node.reeve('backup', 'prune', '--json');
    expect(end).toMatchObject({ status: 1 });
    expect(end.json().outcome).toBe('partial');
    const { dumps = [] } = prunedOf(end).services[0]?.databases[0] ?? {};
    expect(
      dumps.map(({ action, ...dump }) => [action, (dump as { error?: string | null }).error !== null]),
    ).toEqual([
      ['keep', false],
      ['keep', false],
      ['remove', false],
      ['remove', true],
      ['remove', false],
      ['remove', false],
    ]);
    proxy.reset();
    const left = (await keysOf(place))
      .filter((key) => key.includes('/app/'))
      .map((key) => key.split('/')[4]?.slice(0, 10));
    // The emulator still has what was said to be gone.
    expect(left).toEqual([9, 7, 3, 0].map((days) => stampOf(daysAgo(days)).slice(0, 10)));
  });

  it('cannot be reached: told of that service, and the others are pruned', async () => {
    const place = aDirectory();
    const backup = {
      schedule: '0 3 * * *',
      retentionDays: 1,
      bucket: 'file:///nowhere/at/all',
      prefix: 'p/',
    };
    desire(place, { retentionDays: 1 }, aDatabase({ service: 'other', backup }));
    await writeSets(place, [9, 8, 0]);
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toContain('blog/other: nothing is removed: cannot use store "/nowhere/at/all"');
    expect((await keysOf(place)).filter((key) => key.includes('/app/'))).toHaveLength(2);
    expect(await place.node.reeve('backup', 'list')).toMatchObject({ status: 1 });
  });
});
