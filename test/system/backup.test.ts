// Backups as systemd makes them: woken by a tick, in the sandbox of their unit, into the directory that the install has made.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aDatabaseDeploy } from '../support/database-service.ts';
import type { Host } from '../support/host.ts';
import { type Installed, quickIntervals, startInstalled } from '../support/installed.ts';
import { buildPostgresImage, postgresImage } from '../support/postgres.ts';
import { describeHost } from '../support/system.ts';

describeHost('a node with a database', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled({ cluster: { intervals: quickIntervals } });
    host = node.host;
    buildPostgresImage(host.outside('/run/docker.sock'));
    const { project: _, ...database } = aDatabaseDeploy({
      backup: { schedule: '* * * * *', retentionDays: 7 },
    });
    await node.deploy([database]);
    await node.settled(postgresImage);
  });
  afterAll(() => host?.stop());

  // A minute that ends before the database is made has nothing to dump: the next one's comes a minute later.
  it('has a backup of each minute, which nobody waits for (L71, L96)', { timeout: 240_000 }, async () => {
    const container = String((await node.containers())[0]?.name);
    const create = ['docker', 'exec', container, 'psql', '-U', 'postgres', '-c', 'CREATE DATABASE app'];
    await host.waitFor('the database to be made', async () => (await host.run(create)).status === 0);
    const list = 'ls /var/backups/reeve/default/*/db/app/ 2>/dev/null';
    const names = await host.waitFor(
      'a dump',
      async () => (await host.run(['sh', '-c', list])).stdout.trim() || undefined,
      { timeoutMs: 150_000 },
    );
    expect(names).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-00Z\.sql\.gz$/m);
    // What another run is just writing has a name that is gone a moment later.
    const find = String.raw`find /var/backups/reeve/default -ignore_readdir_race -type f ! -name '.reeve-*.tmp' -printf '%m\n'`;
    const modes = await host.sh(`stat -c %a /var/backups/reeve; ${find}`);
    expect(new Set(modes.trim().split('\n'))).toEqual(new Set(['700', '600']));
    const status = await host.waitFor('its status', async () => {
      const { backup } = (await node.status()).services[0] ?? {};
      return backup?.lastSuccessAt != null && backup;
    });
    expect(status).toMatchObject({
      lastError: null,
      databases: [{ name: 'app', sizeBytes: expect.any(Number) }],
    });
    const run = await host.waitFor('the end of a run', async () => {
      const last = await node.runOf('backup');
      return last.endedAt !== null && last;
    });
    expect(run.exitCode).toBe(0);
    expect(await host.show('reeve-backup.path', 'ActiveState', 'Result')).toEqual({
      ActiveState: 'active',
      Result: 'success',
    });
  });
});
