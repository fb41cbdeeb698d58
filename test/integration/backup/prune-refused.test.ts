// What keeps retention from removing anything at all.
import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stampOf } from '../../../src/lib/backup/names.ts';
import { writeSet } from '../../support/backup-files.ts';
import { aDirectory, daysAgo, desire, keysOf, writeSets } from '../../support/backup-places.ts';
import { aDatabase } from '../../support/builders.ts';
import { prefix } from '../../support/inventories.ts';

describe('retention is refused', () => {
  it('where no key below the prefix is a backup’s (O33)', async () => {
    const place = aDirectory();
    desire(place);
    for (const name of ['app-20260604.dump', 'app-20260605.dump'])
      await place.store.put(`${prefix}${name}`, 'x');
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toContain("none of the 2 keys below its prefix is a backup's: is that its prefix?");
    expect(await keysOf(place)).toHaveLength(2);
  });

  it('where two services share a place, or one lies in the other (O28)', async () => {
    const place = aDirectory();
    const backup = {
      schedule: '0 3 * * *',
      retentionDays: 30,
      bucket: place.bucket,
      prefix: `${prefix}nested/`,
    };
    desire(place, {}, aDatabase({ service: 'other', backup }));
    await writeSets(place, [30, 20, 1]);
    const before = await keysOf(place);
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toContain('blog/db: nothing is removed: its backups are among those of blog/other');
    expect(end.stdout).toContain('blog/other: nothing is removed: its backups are among those of blog/db');
    expect(await keysOf(place)).toEqual(before);
  });

  it('with an empty prefix, which is the whole bucket (O28)', async () => {
    const place = aDirectory();
    desire(place, { prefix: '' });
    await writeSet(place.store, '', { at: daysAgo(30), databases: ['app'] });
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toContain('cannot keep backups below "": that is no plain prefix');
  });

  it('with a tier that this version does not know (O30)', async () => {
    const place = aDirectory();
    desire(place, { retention: { hourly: 24 } });
    await writeSets(place, [30, 20, 1]);
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toContain('its policy cannot be followed: there is no retention "hourly"');
    expect((await keysOf(place)).filter((key) => key.endsWith('manifest.json'))).toHaveLength(3);
  });

  it('while the store has something that was written in the future', async () => {
    const place = aDirectory();
    desire(place);
    await writeSets(place, [30, 20, 1]);
    const before = await keysOf(place);
    const ahead = new Date(Date.now() + 3_600_000);
    utimesSync(join(place.bucket.slice('file://'.length), before[0] ?? ''), ahead, ahead);
    const end = await place.node.reeve('backup', 'prune');
    expect(end).toMatchObject({ status: 1 });
    expect(end.stdout).toMatch(
      /ages cannot be told: the store was written (59m|1h)[^:]* ahead of this clock/,
    );
    expect(await keysOf(place)).toEqual(before);
  });

  it('while a backup is under way, whose set it does not touch either way (O32)', async () => {
    const place = aDirectory();
    desire(place);
    await writeSets(place, [30, 20, 1]);
    await writeSet(place.store, prefix, { at: daysAgo(25), databases: ['app'], isFinished: false });
    const under = stampOf(daysAgo(25)).slice(0, 10);
    const flag = join(place.node.root, 'held');
    const holder = place.node.start([
      'lock',
      'backup',
      '--',
      'sh',
      '-c',
      `echo held; while [ ! -e ${flag} ]; do sleep 0.1; done`,
    ]);
    await holder.waitFor('held');
    expect(await place.node.reeve('backup', 'prune')).toMatchObject({ status: 75 });
    writeFileSync(flag, '');
    await holder.end;
    expect(await place.node.reeve('backup', 'prune')).toMatchObject({ status: 0 });
    const left = await keysOf(place);
    expect(left.filter((key) => key.includes(under))).toHaveLength(2);
    expect(left.filter((key) => key.includes(stampOf(daysAgo(30)).slice(0, 10)))).toEqual([]);
  });
});
