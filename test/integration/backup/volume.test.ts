// `prune --volumes` looks for a backup that the volume could be made from again.
import { utimesSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { writeSet } from '../../support/backup-files.ts';
import { aDirectory, daysAgo, desire } from '../../support/backup-places.ts';
import { prefix } from '../../support/inventories.ts';
import { askDocker } from '../../support/node.ts';

const volume = 'launchpadvol_blog_db_data';

describe('a volume of a database', () => {
  it('goes only behind a newer verified backup of all of it', async () => {
    const place = aDirectory();
    const { node, store } = place;
    await askDocker(node.socket, ['volume', 'create', volume]);
    const prune = () => node.reeve('prune', '--volumes', 'blog/db/data', '--yes');
    const list = () => askDocker(node.socket, ['volume', 'ls', '-q', '--filter', `name=${volume}`]);
    desire(place);
    const refused = async (why: string): Promise<void> => {
      const end = await prune();
      expect(end).toMatchObject({ status: 65 });
      expect(end.stderr).toContain(
        `cannot remove volume ${volume}: no verified backup of blog/db is newer than it (${why}`,
      );
      expect(await list()).toBe(`${volume}\n`);
    };
    await refused('it has none');
    await writeSet(store, prefix, { at: daysAgo(1), databases: ['app'] });
    await refused('the last one is of');
    const failures = [{ database: 'logs', error: 'no room' }];
    await writeSet(store, prefix, { at: new Date(Date.now() + 1000), databases: ['app'], failures });
    await refused('that of ');
    await writeSet(store, prefix, { at: new Date(Date.now() + 2000), databases: ['app', 'logs'] });
    const end = await prune();
    expect(end).toMatchObject({ status: 0 });
    expect(await list()).toBe('');
  });

  it('is as old as it is, though what was in it has been touched since, as by a server’s stop', async () => {
    const place = aDirectory();
    const { node, store } = place;
    await askDocker(node.socket, ['volume', 'create', volume]);
    desire(place);
    await writeSet(store, prefix, { at: new Date(Date.now() + 1000), databases: ['app'] });
    const later = new Date(Date.now() + 60_000);
    const format = ['--format', '{{.Mountpoint}}'];
    const mountpoint = (await askDocker(node.socket, ['volume', 'inspect', ...format, volume])).trim();
    utimesSync(mountpoint, later, later);
    const end = await node.reeve('prune', '--volumes', 'blog/db/data', '--yes');
    expect(end).toMatchObject({ status: 0 });
  });

  it('stays where the store of its backups cannot be read', async () => {
    const place = aDirectory();
    await askDocker(place.node.socket, ['volume', 'create', volume]);
    desire({ ...place, bucket: 'file:///nowhere/at/all' });
    const end = await place.node.reeve('prune', '--volumes', 'blog/db/data', '--yes');
    expect(end).toMatchObject({ status: 65 });
    expect(end.stderr).toContain(
      'cannot tell whether blog/db has a backup: cannot use store "/nowhere/at/all"',
    );
  });
});
