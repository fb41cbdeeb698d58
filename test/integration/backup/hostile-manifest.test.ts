// A manifest is read from where others may write: it speaks of the objects of its own set, and of no others.
import { describe, expect, it } from 'vitest';
import { dumpKey, setKey, stampOf } from '../../../src/lib/backup/names.ts';
import { writeSet } from '../../support/backup-files.ts';
import { aDirectory, daysAgo, desire, keysOf, type Place, writeSets } from '../../support/backup-places.ts';
import { prefix } from '../../support/inventories.ts';

const other = 'default/blog/other/';
const stamp = stampOf(daysAgo(30));

type Named = { databases: { database: string; key: string }[]; globals: { key: string } };

/** The set of 30 days ago, as somebody has made it say. */
async function forge({ store }: Place, change: (manifest: Named) => void): Promise<void> {
  const key = setKey(prefix, stamp, 'manifest');
  const manifest = JSON.parse((await store.get(key))?.text ?? '') as Named;
  change(manifest);
  await store.put(key, JSON.stringify(manifest));
}

describe('a manifest that names what is not its own', () => {
  const stolen = dumpKey(other, 'app', stampOf(daysAgo(25)));
  it.each([
    ['a dump of another service', stolen],
    ['a path', '../../etc/passwd'],
    ['a dump of another set', dumpKey(prefix, 'app', stampOf(daysAgo(1)))],
    ['a dump of another database', dumpKey(prefix, 'shop', stamp)],
  ])('has nothing of others removed: %s (O32)', async (_, key) => {
    const place = aDirectory();
    desire(place);
    await writeSet(place.store, other, { at: daysAgo(25), databases: ['app'] });
    await writeSets(place, [30, 20, 1]);
    await forge(place, ({ databases }) => {
      for (const dump of databases) dump.key = key;
    });
    const end = await place.node.reeve('backup', 'prune');
    expect(end.status, end.stderr).toBe(0);
    expect(await keysOf(place)).toContain(stolen);
    expect(await keysOf(place)).toContain(dumpKey(prefix, 'app', stampOf(daysAgo(1))));
    const list = await place.node.reeve('backup', 'list');
    expect(list.stdout).toContain(`set ${stamp}: its manifest cannot be understood: it names `);
  });

  it('lends no roles of another service (O11)', async () => {
    const place = aDirectory();
    desire(place);
    await writeSet(place.store, other, { at: daysAgo(25), databases: ['app'] });
    await writeSets(place, [30]);
    await forge(place, ({ globals }) => {
      globals.key = setKey(other, stampOf(daysAgo(25)), 'globals');
    });
    const end = await place.node.reeve('backup', 'verify');
    expect(end.status).not.toBe(0);
    expect(`${end.stdout}${end.stderr}`).toContain('it names "default/blog/other/');
  });
});
