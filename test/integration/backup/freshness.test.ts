// What `status` and `doctor` say of backups, as whole processes on a real engine.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aDirectory, daysAgo, desire, type Place } from '../../support/backup-places.ts';
import { aDatabase } from '../../support/builders.ts';
import { docker } from '../../support/engine.ts';

type Known = { days: number | null; error?: string; restored?: boolean };

function record({ node }: Place, databases: Readonly<Record<string, Known>>): void {
  const errors = Object.values(databases).flatMap(({ error }) => error ?? []);
  const entries = Object.entries(databases).map(([name, { days, error = null, restored = false }]) => [
    name,
    {
      lastSuccessAt: days === null ? null : daysAgo(days).toISOString(),
      ...{ sizeBytes: 1_200_000, level: 'readable', lastError: error },
      restoredAt: restored ? daysAgo(1).toISOString() : null,
    },
  ]);
  node.writeState('backups.json', {
    version: 1,
    anchors: { 'backup:blog/db': daysAgo(0).getTime() },
    schedules: { 'blog/db': { schedule: '0 3 * * *', timeZone: null } },
    services: {
      'blog/db': {
        ...{ lastRunAt: daysAgo(0).toISOString(), lastSuccessAt: null, lastError: errors[0] ?? null },
        databases: Object.fromEntries(entries),
      },
    },
  });
}

describe('status', () => {
  it('is red for a database whose backups fail, while another’s are fresh (O21, O23)', async () => {
    const place = aDirectory();
    record(place, { app: { days: 0 }, logs: { days: 3, error: 'database "logs": refused' } });
    const [plain, json] = [await place.node.reeve('status'), await place.node.reeve('status', '--json')];
    expect(plain).toMatchObject({ status: 1 });
    expect(plain.stdout).toMatch(/blog\/db +"app" +fresh +.* ago +1\.2 MB +readable\n/);
    expect(plain.stdout).toMatch(/blog\/db +"logs" +failing +3d\S* .*ago +1\.2 MB +readable +.*refused/);
    expect(json).toMatchObject({ status: 1 });
    expect(json.json()['backups']).toMatchObject({
      'blog/db': {
        state: 'failing',
        databases: {
          app: { state: 'fresh', lastError: null, ageMs: expect.any(Number) },
          logs: { state: 'failing', lastSuccessAt: daysAgo(3).toISOString() },
        },
      },
    });
  });

  it('is red for a database that was not backed up for twice its interval, and green where all were', async () => {
    const place = aDirectory();
    record(place, { app: { days: 3 } });
    const stale = await place.node.reeve('status');
    expect(stale).toMatchObject({ status: 1 });
    expect(stale.stdout).toMatch(/"app" +stale +3d/);
    record(place, { app: { days: 0 } });
    expect(await place.node.reeve('status')).toMatchObject({ status: 0 });
  });
});

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function findBackups({ node }: Place): Promise<string[]> {
  const end = await node.reeve('doctor', '--json');
  const findings = end.json()['findings'] as Finding[];
  return findings.filter(({ check }) => check === 'backups').map(({ level, what }) => `${level} ${what}`);
}

describe('doctor', () => {
  it('has no word on backups where there are none, and a good one where they are well', async () => {
    const place = aDirectory();
    place.node.writeDesired([aDatabase()]);
    expect(await findBackups(place)).toEqual([]);
    desire(place);
    record(place, { app: { days: 0, restored: true } });
    const [first, ...others] = await findBackups(place);
    // This machine's engine has its data beside the backups of a test, or elsewhere.
    expect(first).toMatch(/^ok 1 database of 1 service|^warning its backups are on the disk/);
    expect(others).toEqual([]);
  });

  it('tells of what fails, is overdue, was never restored, and of a policy that cannot be followed (O21, O30)', async () => {
    const place = aDirectory();
    desire(place, { retention: { hourly: 4 } });
    record(place, { app: { days: 0 }, logs: { days: 9, error: 'refused' }, old: { days: 5 } });
    expect(await findBackups(place)).toEqual(
      expect.arrayContaining([
        'failure its retention cannot be followed: there is no retention "hourly"',
        expect.stringMatching(/^failure its last backup failed, and its last good one is 9d.* old: refused$/),
        expect.stringMatching(/^failure it is overdue: its last good one is 5d.* old$/),
        'warning no backup of "app", "logs", "old" was ever restored',
      ]),
    );
  });

  it('tells of a store that is not there, and of one on the database’s own disk', async () => {
    const place = aDirectory();
    desire(place);
    record(place, { app: { days: 0, restored: true } });
    rmSync(join(place.node.root, 'backups'), { recursive: true });
    expect(await findBackups(place)).toEqual(['failure it is not there']);
    const dataRoot = docker(place.node.socket, ['info', '--format', '{{.DockerRootDir}}']).trim();
    const directory = join(dataRoot, `backups-${place.node.nodeId}`);
    mkdirSync(directory);
    try {
      const backup = { schedule: '0 3 * * *', retentionDays: 7, bucket: `file://${directory}`, prefix: 'p/' };
      place.node.writeDesired([aDatabase({ volumes: [], backup })]);
      expect(await findBackups(place)).toEqual([
        'warning its backups are on the disk of the database itself',
      ]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
